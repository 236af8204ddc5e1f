import { type Body, isSource } from '../net/http/body.ts'
import { peekBody } from '../net/http/peek-body.ts'
import { isUpgrade } from '../net/http-client/reply-edits.ts'
import { discard, type Reply } from '../net/http-client/send.ts'
import { refuse } from '../pipeline/errors.ts'
import type { Exchange } from '../pipeline/exchange.ts'
import type { Policy } from '../pipeline/policy.ts'
import { enumeration, type Infer, integer, object, optional } from '../schema/dsl.ts'
import type { ReportIssue } from '../schema/report.ts'

const maxBufferBytes = 1024 * 1024 * 1024

const part = (doc: string, status: number) =>
  optional(
    object(
      {
        maxBytes: optional(
          integer(
            {
              doc: 'Limit of the body in bytes.',
              default: 'frontendPolicies.http.maxBufferSize',
              example: 65_536,
            },
            { min: 0, max: maxBufferBytes },
          ),
        ),
        failureMode: optional(
          enumeration(['failClosed', 'failOpen'], {
            doc: `Larger bodies: \`failClosed\` answers ${status}, \`failOpen\` streams them.`,
            default: 'failClosed',
          }),
        ),
      },
      { doc },
    ),
  )

/** `buffer`: complete bodies in place of streams. */
export const bufferSchema = object(
  {
    request: part('Requests are forwarded after their body has arrived.', 413),
    response: part('Responses are sent after their body has arrived, event streams too.', 502),
  },
  { doc: 'Reads complete bodies before they are forwarded.' },
)

export type BufferConfig = Infer<typeof bufferSchema>
type Part = NonNullable<BufferConfig['request']>

/** Reports a policy without effect. */
export function checkBuffer({ request, response }: BufferConfig, report: ReportIssue): void {
  if (request === undefined && response === undefined) report([], 'must have request or response')
}

/** Compiles `buffer`. Upgrades have no body and pass. */
export function compileBuffer({ request, response }: BufferConfig, defaultMaxBytes: number): Policy {
  return {
    name: 'buffer',
    ...(request && {
      onRequest(exchange: Exchange) {
        if (exchange.upgrade !== undefined || exchange.body === undefined) return undefined
        return bufferRequest(exchange, request, defaultMaxBytes)
      },
    }),
    ...(response && {
      onReply(exchange: Exchange, reply: Reply) {
        if (isUpgrade(reply) || reply.body === undefined) return reply
        return bufferReply(exchange, reply, { config: response, defaultMaxBytes })
      },
    }),
  }
}

async function bufferRequest(
  exchange: Exchange,
  config: Part,
  defaultMaxBytes: number,
): Promise<Reply | undefined> {
  const { maxBytes = defaultMaxBytes } = config
  const { kind, body } = await readBody(exchange.body, maxBytes)
  if (kind === 'complete' || config.failureMode === 'failOpen') {
    exchange.body = body
    return undefined
  }
  if (isSource(body)) body.cancel()
  return refuse(exchange, {
    status: 413,
    code: 'request_body_too_large',
    message: `request body is larger than ${maxBytes} bytes`,
  })
}

async function bufferReply(
  exchange: Exchange,
  reply: Reply,
  { config, defaultMaxBytes }: { config: Part; defaultMaxBytes: number },
): Promise<Reply> {
  const { maxBytes = defaultMaxBytes } = config
  const { kind, body } = await readBody(reply.body, maxBytes)
  const read = { ...reply, body }
  if (kind === 'complete' || config.failureMode === 'failOpen') return read
  discard(read)
  return refuse(exchange, {
    status: 502,
    code: 'response_body_too_large',
    message: 'the body of the response is too large',
  })
}

/** A body read up to `maxBytes`; a larger one continues as a stream. */
async function readBody(body: Body, maxBytes: number): Promise<{ kind: 'complete' | 'larger'; body: Body }> {
  if (!isSource(body)) {
    const isLarger = body !== undefined && body.byteLength > maxBytes
    return { kind: isLarger ? 'larger' : 'complete', body }
  }
  const read = await peekBody(body, maxBytes)
  const isEmpty = read.kind === 'complete' && !isSource(read.body) && read.bytes.byteLength === 0
  return { kind: read.kind === 'complete' ? 'complete' : 'larger', body: isEmpty ? undefined : read.body }
}
