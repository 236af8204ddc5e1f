import type { JsonObject } from '../../lib/json/json.ts'
import type { CompileContext } from '../../pipeline/compile-context.ts'
import type { Exchange } from '../../pipeline/exchange.ts'
import type { Policy } from '../../pipeline/policy.ts'
import type { ExtProcConfig, ExtProcVariables } from './config.ts'
import { compileProcessor } from './processor.ts'
import { passReply } from './reply.ts'
import { processRequest } from './request.ts'
import { createRun, type Run } from './run.ts'
import { isProcessed } from './stream/modes.ts'

export type ExtProcOptions = {
  /** Name of the scope that configures the processor. */
  scope: string
  variables: ExtProcVariables
}

/**
 * Compiles external processing: requests and replies pass a service with the protocol
 * `envoy.service.ext_proc.v3`. Throws if a TLS or credential file cannot be read.
 */
export function compileExtProc(
  config: ExtProcConfig,
  context: CompileContext,
  options: ExtProcOptions,
): Policy | undefined {
  const processor = compileProcessor(config, context, options)
  const { modes } = processor
  if (!isProcessed(modes, 'request') && !isProcessed(modes, 'response')) return undefined
  const runs = new WeakMap<Exchange, Run>()
  return {
    name: 'ext-proc',
    onRequest(exchange) {
      const run = createRun(exchange, processor)
      runs.set(exchange, run)
      if (!isProcessed(modes, 'request')) return undefined
      exchange.isProcessed = true
      return processRequest(run)
    },
    onReply(exchange, reply) {
      const run = runs.get(exchange)
      return run === undefined ? reply : passReply(run, reply)
    },
    onEnd(exchange) {
      const run = runs.get(exchange)
      if (run !== undefined) endRun(run)
    },
    explain(exchange) {
      const run = runs.get(exchange)
      return run && explainRun(run)
    },
  }
}

function endRun({ session, processor, outcome }: Run): void {
  session.finish()
  processor.meter.finished(outcome ?? 'processed')
}

function explainRun({ outcome = 'processed', messages, modes, ignoredFields, session }: Run): JsonObject {
  return {
    outcome,
    messages: { sent: messages.sent, received: messages.received },
    requestBody: modes.requestBody,
    responseBody: modes.responseBody,
    ...(ignoredFields > 0 && { ignoredFields }),
    ...(session.end?.kind === 'failed' && { reason: session.end.reason }),
  }
}
