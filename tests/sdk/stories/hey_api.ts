// A day of an integrator who generates with hey-api; prints what was met, as JSON.
import { readFileSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import {
  cancelPost, createIdea, createUploadUrl, createWebhook, deleteWebhook, generateCaption, getPost, listAccounts, listDeliveries,
  listPosts, publishPost, rotateWebhookSecret, updateIdea,
} from './hey'
import type { ErrorResponse, MediaContentType, PostOperation, Target } from './hey'
import { createClient } from './hey/client'

const { URL: baseUrl, KEY = '', READER = '' } = process.env
const client = (auth: string) => createClient({ baseUrl, auth })
const ann = client(KEY), reader = client(READER), stranger = client('sk_test_wrong')

function good<T>({ data, error }: { data?: T; error?: ErrorResponse }): T {
  if (data === undefined) throw new Error(error?.error.message)
  return data
}

function refusal({ error, response }: { error?: ErrorResponse; response?: Response }): ErrorResponse['error'] {
  if (error === undefined) throw new Error(`no failure: ${response?.status}`)
  return error.error
}

async function uploaded(path: string, contentType: MediaContentType): Promise<string> {
  const body = readFileSync(path)
  const { data, meta } = good(await createUploadUrl({ client: ann, body: { contentType, fileSize: body.length } }))
  if (data.uploadUrl === undefined) throw new Error('nowhere to upload to')
  const put = await fetch(data.uploadUrl, { method: 'PUT', body, headers: { ...meta.requiredHeaders } })
  if (!put.ok) throw new Error(await put.text())
  return data.publicUrl
}

const read = async (id: string) => good(await getPost({ client: ann, path: { id } })).data

async function settled(post: PostOperation): Promise<PostOperation> {
  while (post.status === 'scheduled' || post.status === 'publishing') {
    await setTimeout(100)
    post = await read(post.id)
  }
  return post
}

async function main() {
  const photo = await uploaded('photo.jpg', 'image/jpeg'), clip = await uploaded('clip.mp4', 'video/mp4')
  const targets: Target[] = [
    { platform: 'youtube', options: { title: 'Fresh bread', media: [clip], madeForKids: false, privacyStatus: 'unlisted' } },
    { platform: 'mastodon', options: { visibility: 'unlisted' } },
    { platform: 'pinterest', options: { boardId: '549755885175' } },
  ]
  // @ts-expect-error: what another network calls by that name is no option of Mastodon
  const confused: Target = { platform: 'mastodon', options: { boardId: '549755885175' } }
  const header = { 'Idempotency-Key': 'bread-1' }
  const body = { caption: 'Fresh bread from eight', media: [photo], targets }
  const now = await settled(good(await publishPost({ client: ann, headers: header, body })).data)
  const scheduleAt = new Date(Date.now() + 86_400_000).toISOString()
  const later = good(await publishPost({
    client: ann, body: { caption: 'Good morning', scheduleAt, targets: [{ platform: 'mastodon' }] },
  })).data
  const listed = good(await listPosts({ client: ann, query: { status: 'scheduled' } })).data.posts
  const canceled = good(await cancelPost({ client: ann, path: { id: later.id } })).data

  const idea = good(await createIdea({
    client: ann, body: { content: 'Rye', sourceUrl: 'https://bread.example/rye', topic: 'Bread', platform: 'threads' },
  })).data
  const edited = good(await updateIdea({
    client: ann, path: { id: idea.id }, body: { content: 'Rye, again', topic: null, platform: null },
  })).data

  const hook = good(await createWebhook({
    client: ann, body: { url: 'https://hooks.example.com/posthorn', events: ['post.published'] },
  })).data
  const rotated = good(await rotateWebhookSecret({ client: ann, path: { id: hook.id } })).data
  const sent = good(await listDeliveries({ client: ann, path: { id: hook.id } })).data.deliveries
  const ended = good(await deleteWebhook({ client: ann, path: { id: hook.id } })).data

  good(await generateCaption({ client: ann, body: { topic: 'Bread' } }))
  const busy = await generateCaption({ client: ann, body: { topic: 'Bread' } })
  const wrong = refusal(await publishPost({ client: ann, body: { caption: 'Hello', targets: [confused] } }))
  const bare = refusal(await publishPost({
    client: ann, body: { caption: 'Hello', targets: [{ platform: 'mastodon' }, { platform: 'youtube' }] },
  }))
  const path = { id: now.id }
  const refused = [
    refusal(await listAccounts({ client: stranger })), refusal(await cancelPost({ client: reader, path })),
    refusal(await getPost({ client: ann, path: { id: 'post_nobody' } })),
    refusal(await cancelPost({ client: ann, path })), bare, refusal(busy),
  ]
  if (wrong.code !== 'unprocessable') throw new Error(wrong.message)
  console.log(JSON.stringify({
    published: now.targets.map(({ platform, status }) => [platform, status]),
    links: now.targets.every(({ url }) => url !== undefined),
    scheduled: listed.map(({ id }) => id === later.id), canceled: canceled.status,
    idea: [idea.topic, edited.content, edited.topic === undefined, edited.platform === undefined],
    webhook: [ended.status, rotated.secret !== hook.secret, sent.length],
    refused: refused.map(({ code }) => code), details: bare.details?.map(({ path, rule }) => [path, rule]),
    wait: Number(busy.response?.headers.get('Retry-After')) > 0,
  }))
}

main()
