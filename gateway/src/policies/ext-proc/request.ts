import { GatewayError } from '../../lib/gateway-error.ts'
import { applyHeaderEdits } from '../../net/http/header-edits.ts'
import { createHeaderFilter, type Headers } from '../../net/http/headers.ts'
import type { Reply } from '../../net/http-client/send.ts'
import { refuse } from '../../pipeline/errors.ts'
import { type Exchange, sentPath } from '../../pipeline/exchange.ts'
import {
  editRequestHeaders,
  isRequestPseudoHeader,
  markDecodedBody,
  replaceCodedBody,
  setRequestPseudoHeader,
} from '../../pipeline/request-edits.ts'
import { isWithheldHeader } from '../../upstream/withheld-headers.ts'
import { editsOf } from './mutations.ts'
import { type ApplyHeaders, type Run, refuseFailed, respondImmediately, startPart } from './run.ts'
import { processMessage } from './stream/process.ts'
import type { PseudoHeaders } from './wire/encode.ts'

/** `host` is the pseudo-header `:authority`. */
const towardsProcessor = createHeaderFilter((name) => name === 'host' || isWithheldHeader(name))

/** Sends the request to the processor; returns the reply of a refusal. */
export async function processRequest(run: Run): Promise<Reply | undefined> {
  const { exchange } = run
  const headers = forwardedHeaders(exchange)
  const part = startPart(run, 'request', createApply(run, headers))
  const head = { pseudo: pseudoHeaders(exchange), headers }
  const result = await processMessage(part, exchange.body, head)
  switch (result.kind) {
    case 'continue':
      if (result.isChanged) replaceCodedBody(exchange, result.body)
      else exchange.body = result.body
      return undefined
    case 'failed':
      if (!run.processor.limits.failsOpen || result.body === undefined) return refuseFailed(run)
      exchange.body = result.body.of
      return undefined
    case 'tooLarge':
      run.hasReplied = true
      return refuseTooLarge(run)
    case 'immediate':
      return respondImmediately(run)
    case 'cancelled':
      throw new GatewayError('request_aborted', 'the client closed the connection')
  }
}

function refuseTooLarge({ exchange, processor }: Run): Reply {
  const message = `request body is larger than ${processor.limits.maxBufferBytes} bytes`
  return refuse(exchange, { status: 413, code: 'request_body_too_large', message })
}

/** The headers as forwarded so far. */
function forwardedHeaders({ facts, forwarding }: Exchange): Headers {
  const headers = towardsProcessor(facts.request.headers)
  if (forwarding) for (const edit of forwarding.headerEdits) edit(headers)
  return headers
}

function pseudoHeaders({ facts, forwarding }: Exchange): PseudoHeaders {
  const { request } = facts
  const path = forwarding?.path ?? sentPath(request)
  const host = forwarding?.host
  return [
    [':method', forwarding?.method ?? request.method],
    [':scheme', request.scheme],
    [':authority', host === undefined || host === 'client' ? request.host : host],
    [':path', path + (forwarding?.query ?? request.query)],
  ]
}

function createApply(run: Run, headers: Headers): ApplyHeaders {
  const { exchange } = run
  return (mutation) => {
    const found = editsOf(mutation, headers)
    if (found.kind === 'invalid') return found.reason
    run.ignoredFields += found.ignored
    for (const [name, value] of found.pseudo) {
      if (!isRequestPseudoHeader(name)) run.ignoredFields += 1
      else if (!setRequestPseudoHeader(exchange, name, value))
        return `invalid header mutation of the processor: ${name} is not valid`
    }
    const hadCoding = headers['content-encoding'] !== undefined
    applyHeaderEdits(headers, found.edits)
    if (hadCoding && headers['content-encoding'] === undefined) markDecodedBody(exchange)
    editRequestHeaders(exchange, found.edits)
    return undefined
  }
}
