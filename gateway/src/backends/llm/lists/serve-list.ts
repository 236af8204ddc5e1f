import { ownerOf } from '../../../identity/owner.ts'
import { readAll } from '../../../net/http/body.ts'
import type { Reply } from '../../../net/http-client/send.ts'
import type { Exchange } from '../../../pipeline/exchange.ts'
import type { AttemptOptions } from '../attempt/attempt.ts'
import { serveCall } from '../attempt/serve-call.ts'
import { callOf } from '../request/call.ts'
import type { ListedObject, ObjectList } from './object-list.ts'

/** Requests to providers at the same time. */
const concurrentReads = 8
const maxObjectBytes = 1024 * 1024

type ListOptions = AttemptOptions & { settle(exchange: Exchange): void }

type ReadObject =
  | { readonly kind: 'object'; readonly id: string; readonly text: string }
  /** The provider does not have it any more. */
  | { readonly kind: 'gone' }
  | { readonly kind: 'failed'; readonly reply: Reply }

/**
 * Reads the objects of a page at their providers. An object that its provider does not have is omitted, and
 * not listed again. The first other error is the response.
 */
export async function serveList(list: ObjectList, options: ListOptions): Promise<Reply> {
  const read: ReadObject[] = []
  for (let at = 0; at < list.objects.length; at += concurrentReads) {
    const some = list.objects.slice(at, at + concurrentReads)
    read.push(...(await Promise.all(some.map((object) => readObject(object, list, options)))))
    const failed = read.find(({ kind }) => kind === 'failed')
    if (failed?.kind === 'failed') return failed.reply
  }
  const objects = read.filter((one) => one.kind === 'object')
  return {
    status: 200,
    headers: { 'content-type': 'application/json' },
    body: Buffer.from(listText(list, objects)),
  }
}

async function readObject(
  { id, exchange }: ListedObject,
  { endpoint }: ObjectList,
  { settle, ...options }: ListOptions,
): Promise<ReadObject> {
  const call = callOf(exchange)
  if (call === undefined) return { kind: 'gone' }
  try {
    const reply = await serveCall(exchange, call, options)
    const bytes = await readAll(reply.body, maxObjectBytes, 'upstream_too_large')
    if (reply.status === 404) {
      await forget(exchange, { endpoint, id }, options)
      return { kind: 'gone' }
    }
    if (reply.status !== 200) return { kind: 'failed', reply: { ...reply, body: bytes } }
    return { kind: 'object', id, text: bytes.toString() }
  } finally {
    // The entry of the list has no place for the corrections of several batches: a read of each corrects it.
    if (exchange.llm) exchange.llm.batchUse = undefined
    settle(exchange)
  }
}

async function forget(
  exchange: Exchange,
  object: Pick<ObjectList, 'endpoint'> & { id: string },
  { ownedObjects, context }: AttemptOptions,
): Promise<void> {
  try {
    await ownedObjects?.remove(ownerOf(exchange), object)
  } catch (error) {
    context.log.warn({ err: error }, 'llm object remains in lists: database not available')
  }
}

/** Both APIs have the members of the cursor. A page of which nothing remains is continued by its last id. */
function listText(
  { endpoint, hasMore, cursor }: ObjectList,
  objects: readonly { readonly id: string; readonly text: string }[],
): string {
  const first = objects[0]?.id ?? null
  const last = objects.at(-1)?.id ?? (hasMore ? cursor : undefined) ?? null
  const object = endpoint === 'files' || endpoint === 'batches' ? '"object":"list",' : ''
  const next = endpoint === 'anthropic_files' ? `,"next_page":${JSON.stringify(hasMore ? last : null)}` : ''
  const data = objects.map(({ text }) => text).join(',')
  return `{${object}"data":[${data}],"has_more":${hasMore},"first_id":${JSON.stringify(first)},"last_id":${JSON.stringify(last)}${next}}`
}
