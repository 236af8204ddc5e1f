import { isSource } from '../../net/http/body.ts'
import { isEventStream } from '../../net/http/sse.ts'
import { isUpgrade, mayHaveBody } from '../../net/http-client/reply-edits.ts'
import type { Reply } from '../../net/http-client/send.ts'
import type { CompileContext } from '../../pipeline/compile-context.ts'
import { refuse } from '../../pipeline/errors.ts'
import type { Exchange } from '../../pipeline/exchange.ts'
import { recordResponseBody } from '../../pipeline/facts/response-body.ts'
import { recordResponse } from '../../pipeline/facts/response-facts.ts'
import type { Policy } from '../../pipeline/policy.ts'
import { type Changes, compileChanges } from './changes.ts'
import type { PhaseVariables, TransformationConfig, TransformationsConfig } from './config.ts'
import { editReply, editRequest } from './edit-message.ts'

export type TransformationsOptions = {
  readonly variables: PhaseVariables
  /** Name of the scope in metrics. */
  readonly scope: string
  /** Limit of bodies that expressions read and create. */
  readonly maxBodyBytes: number
}

/** Compiles changes of requests and responses. The client's request in `facts` is unchanged. */
export function compileTransformations(
  config: TransformationsConfig,
  { metrics }: Pick<CompileContext, 'metrics'>,
  { variables, scope, maxBodyBytes }: TransformationsOptions,
): Policy {
  const meter = metrics.transformation(scope)
  const request = config.request && compileChanges(config.request, variables.request, maxBodyBytes)
  const response = config.response && compileChanges(config.response, variables.response, maxBodyBytes)
  const described = { scope, ...describe('request', config), ...describe('response', config) }
  return {
    name: 'transformations',
    ...(request && {
      onRequest(exchange: Exchange) {
        const { failures, isIncomplete } = editRequest(exchange, request)
        meter.failed('request', failures)
        return isIncomplete ? refuse(exchange, incomplete) : undefined
      },
    }),
    ...(response && {
      onReply(exchange: Exchange, reply: Reply) {
        const finish = (received: Reply) => changeReply(exchange, received, response)
        if (response.readsResponseBody && hasReadableBody(exchange, reply))
          return recordResponseBody(exchange, reply, maxBodyBytes).then(finish)
        recordResponse(exchange, reply)
        return finish(reply)
      },
    }),
    explain: () => described,
  }

  function changeReply(exchange: Exchange, reply: Reply, changes: Changes): Reply {
    const isUnread = exchange.facts.response?.body === undefined
    if (changes.changesResponseBody && isUnread && hasReadableBody(exchange, reply))
      return refuseUnreadable(exchange, reply)
    meter.failed('response', editReply(exchange, reply, changes))
    return reply
  }
}

const incomplete = {
  status: 400,
  code: 'transformation_failed',
  message: 'the request cannot be transformed',
}

/** Whether a response has a body that ends: streams of events and other protocols are not read. */
function hasReadableBody({ facts }: Exchange, reply: Reply): boolean {
  if (isUpgrade(reply) || isEventStream(reply.headers)) return false
  return mayHaveBody(reply.status) && facts.request.method !== 'HEAD'
}

/** A body that cannot be read cannot be changed, so that it is not sent. */
function refuseUnreadable(exchange: Exchange, reply: Reply): Reply {
  if (isSource(reply.body)) reply.body.cancel()
  return refuse(exchange, {
    status: 502,
    code: 'response_body_unreadable',
    message: 'the body of the response is too large or has an unsupported coding',
  })
}

function describe(phase: 'request' | 'response', config: TransformationsConfig) {
  const part: TransformationConfig | undefined = config[phase]
  if (part === undefined) return undefined
  const { metadata = {}, add = {}, set = {}, remove = [], replace, body } = part
  return {
    [phase]: [
      ...Object.keys(metadata).map((name) => `metadata ${name}`),
      ...(replace === undefined ? [] : ['replace headers']),
      ...Object.keys(add).map((name) => `add ${name.toLowerCase()}`),
      ...Object.keys(set).map((name) => `set ${name.toLowerCase()}`),
      ...remove.map((name) => `remove ${name.toLowerCase()}`),
      ...(body === undefined ? [] : ['replace body']),
    ],
  }
}
