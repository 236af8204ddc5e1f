import { createLru } from '../../lib/lru.ts'
import { PeerError, type Peers } from '../../lib/planes/peers.ts'
import type { Reply } from '../../net/http-client/send.ts'

/** A refresh token: its family, and its generation in the family. */
export type FamilyToken = { family: string; generation: number }

/** Results of the latest rotations of refresh tokens on each data plane. */
export type RotationResults = {
  /** Records a rotation of this data plane. */
  set(token: FamilyToken, result: Promise<unknown>): void
  delete(family: string): void
  /** Result of a rotation of a data plane; undefined if it has ended or has no such result. */
  get(token: FamilyToken, plane: number): Promise<{ result: unknown } | undefined>
}

/** Limit of cached results, which are whole responses. */
const maxResults = 1_000
/** Longer than a rotation, whose requests to the provider have time limits. */
const timeoutMs = 60_000

/**
 * Creates the results of a data plane, and serves them to its peers under the name `service`. Families have
 * unique names.
 */
export function createRotationResults(peers: Peers, service: string): RotationResults {
  const results = createLru<string, { generation: number; result: Promise<unknown> }>(maxResults)

  async function own({ family, generation }: FamilyToken): Promise<{ result: unknown } | undefined> {
    const latest = results.get(family)
    return latest?.generation === generation ? { result: await latest.result } : undefined
  }

  async function ofPeer(token: FamilyToken, plane: number): Promise<{ result: unknown } | undefined> {
    try {
      const found: unknown = await peers.call(plane, service, token, timeoutMs)
      return isObject(found) && 'result' in found ? found : undefined
    } catch (error) {
      // A failure of the rotation is one of the request as well.
      if (error instanceof PeerError) return undefined
      throw error
    }
  }

  peers.serve(service, {
    call: (request) => (isFamilyToken(request) ? own(request) : undefined),
  })
  return {
    set: ({ family, generation }, result) => results.set(family, { generation, result }),
    delete: results.delete,
    get: (token, plane) => (plane === peers.self ? own(token) : ofPeer(token, plane)),
  }
}

function isFamilyToken(value: unknown): value is FamilyToken {
  return (
    isObject(value) &&
    'family' in value &&
    typeof value.family === 'string' &&
    'generation' in value &&
    typeof value.generation === 'number'
  )
}

/** Whether a result is a reply with its whole body, such as the copy of one of another data plane. */
export function isCompleteReply(value: unknown): value is Reply {
  if (!isObject(value) || !('status' in value && 'headers' in value && 'body' in value)) return false
  const isWhole = value.body === undefined || value.body instanceof Uint8Array
  return typeof value.status === 'number' && isObject(value.headers) && isWhole
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null
}
