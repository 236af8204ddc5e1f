import { processingFlags, processorFields } from '../../../policies/ext-proc/config.ts'
import { bodyModes } from '../../../policies/ext-proc/wire/messages.ts'
import { type Infer, object, optional } from '../../../schema/dsl.ts'
import { clusterEnumeration } from '../enumerations.ts'
import { backendReferenceSchema } from '../references.ts'
import { orConditional } from './conditional.ts'

const sendMode = (part: string) =>
  optional(clusterEnumeration(['send', 'skip'], { doc: `Whether ${part} are sent.`, default: 'Send' }))

const bodyMode = (part: string) =>
  optional(
    clusterEnumeration(bodyModes, {
      doc: `How ${part} bodies are sent. \`None\`: not at all; \`Buffered\`: complete, up to \`maxBufferSize\`; \`BufferedPartial\`: the first \`maxBufferSize\` bytes; \`Streamed\`: each chunk awaits its response; \`FullDuplexStreamed\`: chunks in both directions, independent of each other.`,
      default: 'FullDuplexStreamed',
    }),
  )

const extProc = object(
  {
    backendRef: backendReferenceSchema('Processor, a gRPC service.'),
    failureMode: optional(
      clusterEnumeration(['failClosed', 'failOpen'], {
        doc: 'Behaviour if the processor is unavailable or violates the protocol: `FailClosed` refuses with 500, `FailOpen` continues without it where the message is still complete. A broken `backendRef` always refuses.',
        default: 'FailClosed',
      }),
    ),
    processingOptions: optional(
      object(
        {
          requestHeaderMode: sendMode('request headers'),
          responseHeaderMode: sendMode('response headers'),
          requestBodyMode: bodyMode('request'),
          responseBodyMode: bodyMode('response'),
          requestTrailerMode: sendMode('request trailers'),
          responseTrailerMode: sendMode('response trailers'),
          ...processingFlags,
        },
        { doc: 'Parts of requests and responses that the processor receives.' },
      ),
    ),
    ...processorFields,
  },
  { doc: 'A processor of requests and responses.' },
)

/** `traffic.extProc`. */
export const extProcSchema = orConditional(extProc, {
  doc: 'Sends requests and responses to a service with the protocol `envoy.service.ext_proc.v3`, which may change, end or replace them.',
})

export type ExtProc = Infer<typeof extProc>
