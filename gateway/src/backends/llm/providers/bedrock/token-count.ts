import { type BodySource, isSource, withTransform } from '../../../../net/http/body.ts'
import { firstHeader } from '../../../../net/http/headers.ts'
import type { Reply } from '../../../../net/http-client/send.ts'

const openBrace = 0x7b

/**
 * Adds the count of input tokens in the headers of a response to its JSON object, as `inputTextTokenCount`:
 * models of Cohere and Nova do not report it in the body.
 */
export function withTokenCount(reply: Reply): Reply {
  const { headers, body } = reply
  const count = firstHeader(headers, 'x-amzn-bedrock-input-token-count')
  if (count === undefined || !/^\d{1,9}$/.test(count) || body === undefined) return reply
  const { 'content-length': _, ...others } = headers
  const member = Buffer.from(`{"inputTextTokenCount":${count},`)
  if (!isSource(body)) return { ...reply, headers: others, body: joined(member, body) }
  return { ...reply, headers: others, body: withMember(body, member) }
}

function withMember(source: BodySource, member: Buffer): BodySource {
  return withTransform(source, (sink) => {
    let isFirst = true
    return {
      write(chunk) {
        if (!isFirst || chunk.length === 0) return sink.write(chunk)
        isFirst = false
        return sink.write(joined(member, chunk))
      },
      end: (trailers) => sink.end(trailers),
      fail: (error) => sink.fail(error),
    }
  })
}

/** The bytes with the member behind their first brace; other bytes are no object, and unchanged. */
function joined(member: Buffer, bytes: Uint8Array): Uint8Array {
  return bytes[0] === openBrace ? Buffer.concat([member, bytes.subarray(1)]) : bytes
}
