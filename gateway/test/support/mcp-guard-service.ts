import { createServer } from 'node:http2'
import {
  createFileRegistry,
  type DescMethod,
  type DescMethodUnary,
  fromJson,
  type JsonObject,
  toJson,
} from '@bufbuild/protobuf'
import { FileDescriptorSetSchema, file_google_protobuf_struct } from '@bufbuild/protobuf/wkt'
import { connectNodeAdapter } from '@connectrpc/connect-node'
import { endAfter } from './cleanup.ts'

/*
 * A service with the protocol ExtMcp of agentgateway, made of the descriptions of its messages and another
 * gRPC implementation than the gateway's.
 */

/** A checked message, with its content as text. */
export type CheckedMessage = {
  phase: 'request' | 'response'
  targets: string[]
  method: string
  metadata: unknown
  content: string | undefined
  headers: Record<string, string>
}

/** A result as JSON of its message; `mutated` and `mcpError` are texts. */
export type GuardAnswer = {
  pass?: object
  mutated?: string
  error?: { code?: string; reason?: string; mcpError?: string }
  headerMutation?: { set?: { key: string; value: string }[]; remove?: string[] }
}

export type GuardService = {
  host: string
  seen: CheckedMessage[]
  /** Decides on messages; a rejection is a failed call. */
  answer(message: CheckedMessage): GuardAnswer | Promise<GuardAnswer>
}

const field = (name: string, number: number, type: string, more: JsonObject = {}) => ({
  name,
  jsonName: name.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase()),
  number,
  type: `TYPE_${type}`,
  label: 'LABEL_OPTIONAL',
  ...more,
})
const repeated = { label: 'LABEL_REPEATED' }
const packageName = 'agentgateway.dev.ext_mcp'
const own = (name: string) => ({ typeName: `.${packageName}.${name}` })
const struct = { typeName: '.google.protobuf.Struct' }
const decision = { oneofIndex: 0 }
const decisions = [
  field('pass', 1, 'MESSAGE', { ...own('Pass'), ...decision }),
  field('mutated', 2, 'BYTES', decision),
  field('error', 3, 'MESSAGE', { ...own('AuthorizationError'), ...decision }),
]
const method = (name: string, input: string, output: string) => ({
  name,
  inputType: own(input).typeName,
  outputType: own(output).typeName,
})

const descriptors = fromJson(FileDescriptorSetSchema, {
  file: [
    {
      name: 'ext_mcp.proto',
      package: packageName,
      syntax: 'proto3',
      dependency: ['google/protobuf/struct.proto'],
      messageType: [
        {
          name: 'McpRequest',
          field: [
            field('service_names', 1, 'STRING', repeated),
            field('method', 2, 'STRING'),
            field('metadata_context', 3, 'MESSAGE', struct),
            field('mcp_request', 4, 'BYTES'),
            field('headers', 5, 'MESSAGE', { ...repeated, ...own('McpHeader') }),
          ],
        },
        {
          name: 'McpResponse',
          field: [
            field('service_names', 1, 'STRING', repeated),
            field('method', 2, 'STRING'),
            field('metadata_context', 3, 'MESSAGE', struct),
            field('mcp_response', 4, 'BYTES'),
          ],
        },
        {
          name: 'McpRequestResult',
          oneofDecl: [{ name: 'result' }],
          field: [
            ...decisions,
            field('header_mutation', 4, 'MESSAGE', own('HeaderMutation')),
            field('metadata', 5, 'MESSAGE', struct),
          ],
        },
        { name: 'McpResponseResult', oneofDecl: [{ name: 'result' }], field: decisions },
        {
          name: 'HeaderMutation',
          field: [
            field('set', 1, 'MESSAGE', { ...repeated, ...own('McpHeader') }),
            field('remove', 2, 'STRING', repeated),
          ],
        },
        { name: 'McpHeader', field: [field('key', 1, 'STRING'), field('value', 2, 'BYTES')] },
        { name: 'Pass' },
        {
          name: 'AuthorizationError',
          enumType: [
            {
              name: 'Code',
              value: ['UNKNOWN', 'PERMISSION_DENIED', 'RESOURCE_EXHAUSTED', 'INVALID'].map(
                (name, number) => ({
                  name,
                  number,
                }),
              ),
            },
          ],
          field: [
            field('code', 1, 'ENUM', own('AuthorizationError.Code')),
            field('reason', 2, 'STRING'),
            field('mcp_error', 3, 'BYTES'),
          ],
        },
      ],
      service: [
        {
          name: 'ExtMcp',
          method: [
            method('CheckRequest', 'McpRequest', 'McpRequestResult'),
            method('CheckResponse', 'McpResponse', 'McpResponseResult'),
          ],
        },
      ],
    },
  ],
})
descriptors.file.unshift(file_google_protobuf_struct.proto)
const service = createFileRegistry(descriptors).getService(`${packageName}.ExtMcp`)

/** Starts a service that allows everything until `answer` is replaced. */
export async function startGuardService(): Promise<GuardService> {
  const state: GuardService = { host: '', seen: [], answer: () => ({ pass: {} }) }
  const [checkRequest, checkResponse] = (service?.methods ?? []).map(unary)
  if (checkRequest === undefined || checkResponse === undefined) throw new Error('no service')
  const answerTo = async (phase: CheckedMessage['phase'], json: unknown, to: DescMethodUnary) => {
    const message = readMessage(phase, json)
    state.seen.push(message)
    const { mutated, error, ...rest } = await state.answer(message)
    return fromJson(to.output, {
      ...JSON.parse(JSON.stringify(rest)),
      ...(mutated !== undefined && { mutated: Buffer.from(mutated).toString('base64') }),
      ...(error && {
        error: {
          ...error,
          ...(error.mcpError !== undefined && { mcpError: Buffer.from(error.mcpError).toString('base64') }),
        },
      }),
    })
  }
  const server = createServer(
    connectNodeAdapter({
      routes(router) {
        router.rpc(checkRequest, (request) =>
          answerTo('request', toJson(checkRequest.input, request), checkRequest),
        )
        router.rpc(checkResponse, (request) =>
          answerTo('response', toJson(checkResponse.input, request), checkResponse),
        )
      },
    }),
  )
  const sessions = new Set<{ destroy(): void }>()
  server.on('session', (session) => sessions.add(session))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  state.host = `127.0.0.1:${address.port}`
  endAfter('test', () => {
    server.close()
    for (const session of sessions) session.destroy()
  })
  return state
}

function unary(method: DescMethod): DescMethodUnary {
  if (method.methodKind !== 'unary') throw new Error(`${method.name} is not unary`)
  return { ...method, methodKind: 'unary' }
}

type WireMessage = {
  serviceNames?: string[]
  method?: string
  metadataContext?: unknown
  mcpRequest?: string
  mcpResponse?: string
  headers?: { key?: string; value?: string }[]
}

function readMessage(phase: CheckedMessage['phase'], json: unknown): CheckedMessage {
  const { serviceNames = [], method = '', metadataContext, headers = [], ...rest } = json as WireMessage
  const content = phase === 'request' ? rest.mcpRequest : rest.mcpResponse
  return {
    ...{ phase, targets: serviceNames, method, metadata: metadataContext },
    content: content === undefined ? undefined : Buffer.from(content, 'base64').toString(),
    headers: Object.fromEntries(
      headers.map(({ key = '', value = '' }) => [key, Buffer.from(value, 'base64').toString()]),
    ),
  }
}
