// A day of an integrator who generates with openapi-typescript; prints what was met, as JSON.
import { readFileSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import createClient from 'openapi-fetch'
import type { components, paths } from './posthorn'

type Schemas = components['schemas']
const { URL: baseUrl, KEY = '', READER = '' } = process.env
const client = (key: string) => createClient<paths>({ baseUrl, headers: { Authorization: `Bearer ${key}` } })
const ann = client(KEY), reader = client(READER), stranger = client('sk_test_wrong')

function good<T>({ data, error }: { data?: T; error?: Schemas['ErrorResponse'] }): T {
  if (data === undefined) throw new Error(error?.error.message)
  return data
}

function refusal({ error, response }: { error?: Schemas['ErrorResponse']; response: Response }): Schemas['Error'] {
  if (error === undefined) throw new Error(`no failure: ${response.status}`)
  return error.error
}

async function uploaded(path: string, contentType: Schemas['MediaContentType']): Promise<string> {
  const body = readFileSync(path)
  const { data, meta } = good(await ann.POST('/v1/media/upload-url', { body: { contentType, fileSize: body.length } }))
  if (data.uploadUrl === undefined) throw new Error('nowhere to upload to')
  const put = await fetch(data.uploadUrl, { method: 'PUT', body, headers: { ...meta.requiredHeaders } })
  if (!put.ok) throw new Error(await put.text())
  return data.publicUrl
}

const read = async (id: string) => good(await ann.GET('/v1/posts/{id}', { params: { path: { id } } })).data

async function settled(post: Schemas['PostOperation']): Promise<Schemas['PostOperation']> {
  while (post.status === 'scheduled' || post.status === 'publishing') {
    await setTimeout(100)
    post = await read(post.id)
  }
  return post
}

async function main() {
  const photo = await uploaded('photo.jpg', 'image/jpeg'), clip = await uploaded('clip.mp4', 'video/mp4')
  const targets: Schemas['Target'][] = [
    { platform: 'youtube', options: { title: 'Fresh bread', media: [clip], madeForKids: false, privacyStatus: 'unlisted' } },
    { platform: 'mastodon', options: { visibility: 'unlisted' } },
    { platform: 'pinterest', options: { boardId: '549755885175' } },
  ]
  // @ts-expect-error: what another network calls by that name is no option of Mastodon
  const confused: Schemas['Target'] = { platform: 'mastodon', options: { boardId: '549755885175' } }
  const header = { 'Idempotency-Key': 'bread-1' }
  const body = { caption: 'Fresh bread from eight', media: [photo], targets }
  const now = await settled(good(await ann.POST('/v1/posts', { params: { header }, body })).data)
  const scheduleAt = new Date(Date.now() + 86_400_000).toISOString()
  const later = good(await ann.POST('/v1/posts', {
    body: { caption: 'Good morning', scheduleAt, targets: [{ platform: 'mastodon' }] },
  })).data
  const listed = good(await ann.GET('/v1/posts', { params: { query: { status: 'scheduled' } } })).data.posts
  const canceled = good(await ann.DELETE('/v1/posts/{id}', { params: { path: { id: later.id } } })).data

  const idea = good(await ann.POST('/v1/ideas', {
    body: { content: 'Rye', sourceUrl: 'https://bread.example/rye', topic: 'Bread', platform: 'threads' },
  })).data
  const edited = good(await ann.PATCH('/v1/ideas/{id}', {
    params: { path: { id: idea.id } }, body: { content: 'Rye, again', topic: null, platform: null },
  })).data

  const hook = good(await ann.POST('/v1/webhooks', {
    body: { url: 'https://hooks.example.com/posthorn', events: ['post.published'] },
  })).data
  const params = { path: { id: hook.id } }
  const rotated = good(await ann.POST('/v1/webhooks/{id}/rotate-secret', { params })).data
  const sent = good(await ann.GET('/v1/webhooks/{id}/deliveries', { params })).data.deliveries
  const ended = good(await ann.DELETE('/v1/webhooks/{id}', { params })).data

  good(await ann.POST('/v1/generate', { body: { topic: 'Bread' } }))
  const busy = await ann.POST('/v1/generate', { body: { topic: 'Bread' } })
  const wrong = refusal(await ann.POST('/v1/posts', { body: { caption: 'Hello', targets: [confused] } }))
  const bare = refusal(await ann.POST('/v1/posts', {
    body: { caption: 'Hello', targets: [{ platform: 'mastodon' }, { platform: 'youtube' }] },
  }))
  const path = { id: now.id }
  const refused = [
    refusal(await stranger.GET('/v1/accounts')), refusal(await reader.DELETE('/v1/posts/{id}', { params: { path } })),
    refusal(await ann.GET('/v1/posts/{id}', { params: { path: { id: 'post_nobody' } } })),
    refusal(await ann.DELETE('/v1/posts/{id}', { params: { path } })), bare, refusal(busy),
  ]
  if (wrong.code !== 'unprocessable') throw new Error(wrong.message)
  console.log(JSON.stringify({
    published: now.targets.map(({ platform, status }) => [platform, status]),
    links: now.targets.every(({ url }) => url !== undefined),
    scheduled: listed.map(({ id }) => id === later.id), canceled: canceled.status,
    idea: [idea.topic, edited.content, edited.topic === undefined, edited.platform === undefined],
    webhook: [ended.status, rotated.secret !== hook.secret, sent.length],
    refused: refused.map(({ code }) => code), details: bare.details?.map(({ path, rule }) => [path, rule]),
    wait: Number(busy.response.headers.get('Retry-After')) > 0,
  }))
}

main()
