import { refuse } from '../pipeline/errors.ts'
import type { Policy } from '../pipeline/policy.ts'
import { type RequestBodyLimits, readRequestBody } from '../pipeline/request-body.ts'
import { markDecodedBody } from '../pipeline/request-edits.ts'

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
        if (read.decoded) markDecodedBody(exchange)
        return undefined
      })
    },
  }
}
