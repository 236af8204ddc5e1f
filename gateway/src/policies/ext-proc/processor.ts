import type { Clock } from '../../lib/clock.ts'
import { parseDuration } from '../../lib/duration.ts'
import { createSemaphore, type Semaphore } from '../../lib/planes/semaphore.ts'
import type { OpenGrpcStream } from '../../net/grpc-stream.ts'
import type { CompileContext } from '../../pipeline/compile-context.ts'
import type { ExtProcMeter } from '../../telemetry/metrics/services.ts'
import { compileGrpcService, type GrpcService } from '../../upstream/grpc-service/grpc-service.ts'
import { configuredModes, type ExtProcConfig, type ExtProcVariables, replyVariablesOf } from './config.ts'
import { compileContext, type ProcessorContext } from './context.ts'
import type { Modes } from './stream/modes.ts'
import type { PartLimits } from './stream/part.ts'
import { createEncoder, type Encoder } from './wire/encode.ts'
import { processMethod } from './wire/messages.ts'

/** A compiled processor of one scope. */
export type Processor = {
  readonly scope: string
  readonly modes: Modes
  readonly allowsModeOverride: boolean
  readonly limits: PartLimits
  readonly open: OpenGrpcStream
  readonly streams: Semaphore
  readonly authorize: GrpcService['authorize']
  readonly encoder: Encoder
  readonly context: ProcessorContext
  readonly clock: Clock
  readonly meter: ExtProcMeter
  /** Records a failure; logs some of them. */
  recordFailure(reason: string): void
}

const defaultDeadlineMs = 10_000
const defaultBufferBytes = 2 * 1024 * 1024
const defaultStreams = 10_000

/** Limit of received messages: that of the gRPC libraries, and more for larger buffered bodies. */
const minMessageBytes = 4 * 1024 * 1024
/** Headers beside a buffered body. */
const besideBodyBytes = 256 * 1024

/** Minimum interval between log lines about a failing processor. */
const quietMs = 10_000

export function compileProcessor(
  config: ExtProcConfig,
  context: CompileContext,
  { scope, variables }: { scope: string; variables: ExtProcVariables },
): Processor {
  const service = compileGrpcService(config, context)
  const maxBufferBytes = config.maxBufferSize ?? defaultBufferBytes
  const maxMessageBytes = Math.max(minMessageBytes, maxBufferBytes + besideBodyBytes)
  const name = `ext-proc/streams/${scope} ${service.key}`
  const streams = context.retained(name, () => createSemaphore(context.memory, name))
  streams.resize(config.maxStreams ?? defaultStreams)
  const { clock, log } = context
  const failures = context.retained(`ext-proc/failures/${scope} ${service.key}`, () => ({
    loggedAt: Number.NEGATIVE_INFINITY,
  }))
  return {
    scope,
    modes: configuredModes(config),
    allowsModeOverride: config.processingOptions?.allowModeOverride === true,
    limits: {
      deadlineMs: parseDuration(config.messageTimeout ?? '') ?? service.timeoutMs ?? defaultDeadlineMs,
      maxBufferBytes,
      failsOpen: config.failureMode === 'failOpen',
    },
    open: service.stream(processMethod, { maxMessageBytes }),
    streams,
    authorize: service.authorize,
    encoder: createEncoder(),
    context: compileContext(config, {
      request: variables.request,
      reply: replyVariablesOf(variables),
    }),
    clock,
    meter: context.metrics.extProc(scope),
    recordFailure(reason) {
      if (clock.monotonic() - failures.loggedAt < quietMs) return
      failures.loggedAt = clock.monotonic()
      log.warn({ scope, reason }, 'external processing failed')
    },
  }
}
