import { isSource, readAll } from '../../../net/http/body.ts'
import { type DecodeErrors, decode, isPlain } from '../../../net/http/content-encoding.ts'
import { createHeaderFilter, firstHeader } from '../../../net/http/headers.ts'
import type { Reply } from '../../../net/http-client/send.ts'
import type { CompileContext } from '../../../pipeline/compile-context.ts'
import type { ObjectIds } from '../batches/object-ids.ts'
import type { Prices } from '../catalog/prices.ts'
import type { OwnedObjects } from '../lists/owned-objects.ts'
import type { ResponseIds } from '../stored/response-ids.ts'

export type ReplyOptions = {
  /** Limit of bodies that are read completely. */
  maxReplyBytes: number
  responseIds: ResponseIds
  objectIds: ObjectIds
  ownedObjects: OwnedObjects | undefined
  context: CompileContext
  /** Prices of the results of batches. */
  prices?: Prices | undefined
}

const decodeErrors: DecodeErrors = {
  tooLarge: 'upstream_too_large',
  malformed: 'upstream_invalid',
  unknown: 'upstream_invalid',
}

/**
 * The body of a provider's response without content coding. Throws `upstream_too_large` and
 * `upstream_invalid`.
 */
export function readDecoded({ body, headers }: Reply, maxBytes: number): Promise<Buffer> {
  const bytes = readAll(body, maxBytes, 'upstream_too_large')
  const encoding = firstHeader(headers, 'content-encoding')
  if (encoding === undefined || isPlain(encoding)) return bytes
  return bytes.then((coded) => decode(coded, encoding, maxBytes, decodeErrors))
}

/** Releases the connection of a response whose body is not read. */
export function cancelReply({ body }: Reply): void {
  if (isSource(body)) body.cancel()
}

/** Headers about the provider's own site and limits. */
const withheld: ReadonlySet<string> = new Set([
  'set-cookie',
  'alt-svc',
  'strict-transport-security',
  'x-ratelimit-limit',
  'x-ratelimit-remaining',
  'x-ratelimit-reset',
])

const isWithheld = (name: string) => withheld.has(name) || name.startsWith('access-control-')

/** The headers of a provider's response for the client. */
export const filterHeaders = createHeaderFilter(isWithheld)
/** The same for a decoded body. */
export const filterDecodedHeaders = createHeaderFilter(
  (name) => name === 'content-length' || name === 'content-encoding' || isWithheld(name),
)
