// Reads {"before": …, "after": …}, two documents, and says on each line what breaks those who build on the first.
import { readFileSync } from 'node:fs'
import { apiCompare } from 'api-smart-diff'

const { before, after } = JSON.parse(readFileSync(0))

// What api-smart-diff cannot know of this contract. Requests are closed, so that what is no longer there is refused, and callers
// read what answers hold; who may call what is in x-required-scope; SDKs name their functions by the operationId.
function breaks({ action, path, type }) {
  if (path[0] !== 'paths') return false
  const [within, name] = path.slice(-2)
  if (within === 'properties') return action === 'remove' || type === 'breaking'
  if (within === 'enum' && action === 'add' && path.includes('responses')) return false   // info.description: they may grow
  if (name === 'x-required-scope') return action !== 'remove'
  return type === 'breaking' || path[3] === 'security' || name === 'operationId'
}

// The name of a component is no part of the contract: where one document alone has it, what it stands for takes its place.
function inPlace(node, document, other) {
  if (node === null || typeof node !== 'object') return node
  if (Array.isArray(node)) return node.map((item) => inPlace(item, document, other))
  const [, , kind, name] = node.$ref?.split('/') ?? []
  if (name && !(name in (other.components[kind] ?? {}))) return inPlace(document.components[kind][name], document, other)
  return Object.fromEntries(Object.entries(node).map(([key, value]) => [key, inPlace(value, document, other)]))
}

const found = apiCompare(inPlace(before, before, after), inPlace(after, after, before)).diffs.filter(breaks)
for (const { action, path, description } of found) console.log(`${action} ${path.join(' ')}: ${description ?? ''}`)
process.exitCode = found.length ? 1 : 0
