import type { Headers } from '../net/http/headers.ts'
import { refuse } from '../pipeline/errors.ts'
import { forwardingOf } from '../pipeline/forwarding.ts'
import type { Policy } from '../pipeline/policy.ts'
import { type RequestBodyLimits, readRequestBody } from '../pipeline/request-body.ts'

const empty = new Uint8Array(0)

/**
 * Reads the body for expressions over `request.body`. They see the forwarded bytes, without content coding.
 */
export function compileRequestBody(rules: RequestBodyLimits): Policy {
  return {
    name: 'request body',
    onRequest(exchange) {
      const { facts } = exchange
      // Upgrades have no body either: later bytes belong to another protocol.
      if (exchange.body === undefined) {
        facts.body = empty
        return undefined
      }
      return readRequestBody(exchange, rules).then((read) => {
        if (read.kind === 'refused') return refuse(exchange, read.refusal)
        facts.body = read.bytes
        exchange.body = read.bytes.byteLength === 0 ? undefined : read.bytes
        if (read.decoded) forwardingOf(exchange).headerEdits.push(removeCoding)
        return undefined
      })
    },
  }
}

/** Headers about the coded bytes, which are not forwarded (RFC 9110 section 8.4, RFC 9530). */
const aboutCoding = ['content-encoding', 'content-digest', 'repr-digest', 'digest', 'content-md5']

function removeCoding(headers: Headers): void {
  for (const name of aboutCoding) delete headers[name]
}
