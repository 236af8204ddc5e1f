import { type BodySink, type BodySource, isSource, readAll, withTransform } from '../../net/http/body.ts'
import { createChunkList } from '../../net/http/chunk-list.ts'
import { type DecodeErrors, decode, isPlain } from '../../net/http/content-encoding.ts'
import { firstHeader } from '../../net/http/headers.ts'
import { isEventStream } from '../../net/http/sse.ts'
import type { OutgoingRequest, Reply } from '../../net/http-client/send.ts'
import type { Authorize } from '../../upstream/credentials/credentials.ts'
import { hideCredentials } from '../../upstream/hidden-credential/hidden-credential.ts'

/** Most bytes of an error that are searched. */
const maxBytes = 64 * 1024
/** Shorter texts occur by chance, and are no secrets. */
const minLength = 8

/**
 * Hides the credentials of the gateway in an error of a backend, because some servers quote the rejected one.
 * Other responses, bodies over 64 KiB, and coded ones without a declared length are not searched.
 */
export function hideInError(
  reply: Reply,
  request: OutgoingRequest,
  authorize: Pick<Authorize, 'placed'> | undefined,
): Reply | Promise<Reply> {
  if (reply.status < 400 || authorize?.placed === undefined) return reply
  const credentials = authorize.placed(request).filter(({ length }) => length >= minLength)
  const { body, headers } = reply
  if (credentials.length === 0 || body === undefined || isEventStream(headers)) return reply
  if (!isSource(body)) return hideInBytes(reply, body, credentials)
  const length = firstHeader(headers, 'content-length')
  if (length === undefined)
    return isPlain(firstHeader(headers, 'content-encoding'))
      ? { ...reply, body: hidingSource(body, credentials) }
      : reply
  if (Number(length) > maxBytes) return reply
  return readAll(body, maxBytes, 'upstream_too_large').then((bytes) => hideInBytes(reply, bytes, credentials))
}

const decodeErrors: DecodeErrors = {
  tooLarge: 'upstream_too_large',
  malformed: 'upstream_invalid',
  unknown: 'upstream_invalid',
}

function hideInBytes(
  reply: Reply,
  bytes: Uint8Array,
  credentials: readonly string[],
): Reply | Promise<Reply> {
  if (bytes.byteLength > maxBytes) return reply
  const encoding = firstHeader(reply.headers, 'content-encoding')
  if (encoding === undefined || isPlain(encoding))
    return withHidden(reply, bytes, { sent: bytes, credentials })
  return decode(bytes, encoding, maxBytes, decodeErrors).then(
    (plain) => withHidden(reply, plain, { sent: bytes, credentials }),
    // Larger texts, and codings that the gateway does not read.
    () => ({ ...reply, body: bytes }),
  )
}

/** `sent` are the bytes of the backend, which are forwarded unless a credential occurs. */
function withHidden(
  reply: Reply,
  plain: Uint8Array,
  { sent, credentials }: { sent: Uint8Array; credentials: readonly string[] },
): Reply {
  const hidden = hideCredentials(plain, credentials)
  if (hidden.equals(plain)) return { ...reply, body: sent }
  const { 'content-encoding': _, 'content-length': __, ...headers } = reply.headers
  return { ...reply, headers: { ...headers, 'content-length': String(hidden.length) }, body: hidden }
}

/** A stream without a declared length, whose start is searched before it is sent. */
function hidingSource(source: BodySource, credentials: readonly string[]): BodySource {
  return withTransform(source, (sink) => createHidingSink(sink, credentials))
}

function createHidingSink(sink: BodySink, credentials: readonly string[]): BodySink {
  const start = createChunkList()
  let size = 0
  let isSearched = false

  function search(): boolean {
    isSearched = true
    return size === 0 || sink.write(hideCredentials(Buffer.concat(start.close(), size), credentials))
  }

  return {
    write(chunk) {
      if (isSearched) return sink.write(chunk)
      start.add(chunk)
      size += chunk.byteLength
      return size < maxBytes || search()
    },
    end(trailers) {
      if (!isSearched) search()
      sink.end(trailers)
    },
    fail(error) {
      if (!isSearched) search()
      sink.fail(error)
    },
  }
}
