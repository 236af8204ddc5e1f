import { asGatewayError } from '../../../lib/gateway-error.ts'
import { type Outcome, sendGatewayRequest } from '../message/gateway-request.ts'
import { messageOf } from '../message/json-rpc.ts'
import type { Message, MessageFlow, MessageSink } from '../message/message.ts'
import type { CallContext, TargetSession } from '../targets/target.ts'

const defaultRevision = '2025-11-25'

/**
 * Sends one request in a new session: `initialize` without client capabilities, then the request. The caller
 * closes the session.
 */
export function sendStatelessRequest(
  session: TargetSession,
  message: Message,
  context: CallContext,
  { sink, version }: { sink: MessageSink; version: string },
): MessageFlow {
  let flow: MessageFlow | undefined
  let cancelled = false
  const introduction = sendGatewayRequest(session, initializeRequest(context, version), context, () => true)
  introduction.outcome.then(goOn).catch((error: unknown) => {
    if (!cancelled) sink.fail({ kind: 'error', error: asGatewayError(error) })
  })

  async function goOn(outcome: Outcome): Promise<void> {
    if (cancelled) return
    if (outcome.kind === 'failed') {
      sink.fail(outcome.failure)
      return
    }
    if (outcome.message.value['result'] === undefined) {
      sink.fail({ kind: 'refused', status: 502, code: -32603, message: 'the target refused to initialize' })
      return
    }
    const failure = await session.deliver(initialized, context)
    if (cancelled) return
    if (failure) sink.fail(failure)
    else flow = session.request(message, context, sink)
  }

  return {
    resume: () => flow?.resume(),
    cancel() {
      cancelled = true
      introduction.flow.cancel()
      flow?.cancel()
    },
  }
}

const initialized = messageOf({ jsonrpc: '2.0', method: 'notifications/initialized' })

function initializeRequest({ protocolVersion = defaultRevision }: CallContext, version: string): Message {
  const clientInfo = { name: 'tollgate', version }
  const params = { protocolVersion, capabilities: {}, clientInfo }
  return messageOf({ jsonrpc: '2.0', id: 'tollgate/initialize', method: 'initialize', params })
}
