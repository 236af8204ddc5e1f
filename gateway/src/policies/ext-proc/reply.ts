import { GatewayError } from '../../lib/gateway-error.ts'
import { isSource } from '../../net/http/body.ts'
import { applyHeaderEdits } from '../../net/http/header-edits.ts'
import { isUpgrade, mayHaveBody, setReplyStatus } from '../../net/http-client/reply-edits.ts'
import { discard, type Reply } from '../../net/http-client/send.ts'
import { recordResponse } from '../../pipeline/facts/response-facts.ts'
import { editsOf } from './mutations.ts'
import {
  type ApplyHeaders,
  type Run,
  refuseFailed,
  replaceReply,
  respondImmediately,
  startPart,
} from './run.ts'
import { isProcessed } from './stream/modes.ts'
import { processMessage } from './stream/process.ts'

/** Sends a reply to the processor. Replies of the processor itself and its refusals pass. */
export function passReply(run: Run, reply: Reply): Reply | Promise<Reply> {
  if (run.hasReplied) return reply
  const { end } = run.session
  if (end?.kind === 'immediate') return replaceReply(run, reply, respondImmediately)
  if (run.isAborted) return replaceReply(run, reply, refuseFailed)
  if (!isProcessed(run.modes, 'response')) return reply
  if (end === undefined) return processReply(run, reply)
  if (end.kind === 'failed' && !run.processor.limits.failsOpen) return replaceReply(run, reply, refuseFailed)
  return reply
}

async function processReply(run: Run, reply: Reply): Promise<Reply> {
  const { exchange, processor } = run
  // Replies of policies may share their headers between requests.
  reply.headers = { ...reply.headers }
  if (processor.context.readsResponse) recordResponse(exchange, reply)
  const part = startPart(run, 'response', createApply(run, reply))
  const method = exchange.forwarding?.method ?? exchange.facts.request.method
  const hasBody = method !== 'HEAD' && !isUpgrade(reply) && mayHaveBody(reply.status)
  const head = { pseudo: [[':status', String(reply.status)]] as const, headers: { ...reply.headers } }
  const result = await processMessage(part, hasBody ? reply.body : undefined, head)
  switch (result.kind) {
    case 'continue':
      if (!hasBody) return reply
      return withBody(reply, result)
    case 'failed':
      if (!processor.limits.failsOpen || result.body === undefined)
        return replaceReply(run, reply, refuseFailed)
      return hasBody ? withBody(reply, { body: result.body.of, isChanged: false }) : reply
    case 'tooLarge':
      discard(reply)
      run.hasReplied = true
      throw new GatewayError(
        'upstream_too_large',
        `response body is larger than ${processor.limits.maxBufferBytes} bytes`,
      )
    case 'immediate':
      return replaceReply(run, reply, respondImmediately)
    case 'cancelled':
      discard(reply)
      throw new GatewayError('request_aborted', 'the client closed the connection')
  }
}

function withBody(reply: Reply, { body, isChanged }: Pick<Reply, 'body'> & { isChanged: boolean }): Reply {
  // The processor may have selected a status without a body.
  if (!mayHaveBody(reply.status)) {
    if (isSource(body)) body.cancel()
    return reply
  }
  reply.body = body
  if (isChanged && reply.headers['content-length'] !== undefined) delete reply.headers['content-length']
  return reply
}

function createApply(run: Run, reply: Reply): ApplyHeaders {
  return (mutation) => {
    const found = editsOf(mutation, reply.headers)
    if (found.kind === 'invalid') return found.reason
    run.ignoredFields += found.ignored
    for (const [name, value] of found.pseudo) {
      if (name !== ':status') run.ignoredFields += 1
      else if (Number(value) !== reply.status && !setReplyStatus(reply, Number(value)))
        return 'invalid header mutation of the processor: :status is not valid'
    }
    applyHeaderEdits(reply.headers, found.edits)
    return undefined
  }
}
