import { type CancellationSource, createCancellation } from '../../../../lib/cancellation.ts'
import { asGatewayError, GatewayError } from '../../../../lib/gateway-error.ts'
import { memberText } from '../../../../lib/json/edit.ts'
import { isJsonObject, type JsonObject } from '../../../../lib/json/json.ts'
import { type JsonText, readJsonObject } from '../../../../lib/json/text.ts'
import { readAll } from '../../../../net/http/body.ts'
import { firstHeader, type Headers } from '../../../../net/http/headers.ts'
import type { Send } from '../../../../net/http-client/send.ts'
import type { CompileContext } from '../../../../pipeline/compile-context.ts'
import {
  anyOfShapes,
  exactlyOne,
  filePath,
  type Infer,
  jsonObject,
  name,
  object,
  url,
} from '../../../../schema/dsl.ts'
import type { ReportIssue } from '../../../../schema/report.ts'
import { hideCredentials } from '../../../../upstream/hidden-credential/hidden-credential.ts'
import {
  errorText,
  internalError,
  invalidParams,
  invalidRequest,
  methodNotFound,
} from '../../message/json-rpc.ts'
import type { Message, MessageFlow, MessageSink } from '../../message/message.ts'
import {
  type AddressContext,
  addressFields,
  addressVariants,
  checkAddress,
  compileAddress,
  readAddress,
  type TargetAddress,
} from '../address.ts'
import { readCancelled, requestCancelled } from '../cancelled.ts'
import type { CallContext, Target, TargetSession } from '../target.ts'
import { compileArguments, type EncodeArguments } from './arguments.ts'
import type { ApiDocument, Operation } from './document.ts'
import { errorResultText, resultText } from './result.ts'
import { createSource, type DocumentSource, readInline, unexpectedKey } from './source.ts'

/** `mcp.targets[].openapi`. */
export const openApiSchema = exactlyOne(
  addressVariants,
  {
    ...addressFields,
    schema: anyOfShapes(
      [
        object(
          { file: filePath({ doc: 'Path of the document.' }) },
          { doc: 'A document in a file, JSON or YAML.' },
        ),
        object(
          {
            url: url({
              doc: 'URL of the document, fetched at first use and refreshed every 5 minutes.',
            }),
          },
          { doc: 'A document on a server, JSON or YAML.' },
        ),
        jsonObject({ doc: 'Inline document.' }),
        name({ doc: 'Inline document as text, JSON or YAML.' }),
      ],
      { doc: 'The OpenAPI 3.0 or 3.1 document of the API: `{file}`, `{url}` or inline.' },
    ),
  },
  { doc: 'HTTP API as tools: each operation of its OpenAPI document is a tool.' },
)

export type OpenApiConfig = Infer<typeof openApiSchema>

/** Reports an invalid address and errors of an inline document. */
export function checkOpenApi(config: OpenApiConfig, report: ReportIssue): void {
  checkAddress(config, '', report)
  const reading = config.host === undefined ? undefined : readAddress(config, '')
  if (reading?.kind === 'address' && reading.address.path.includes('?'))
    report(['host'], 'must not have a query')
  else if (config.path?.includes('?')) report(['path'], 'must not have a query')
  const stray = unexpectedKey(config.schema)
  if (stray !== undefined) report(['schema', stray], 'is not valid next to file or url')
  const read = readInline(config.schema)
  if (read?.kind !== 'mistakes') return
  for (const { place, message } of read.mistakes) report(['schema', ...place], message)
}

export type OpenApiContext = Pick<
  CompileContext,
  'send' | 'log' | 'clock' | 'readFile' | 'threads' | 'workQueue'
> &
  AddressContext & {
    /** Parses YAML; throws an error with a description. */
    readonly parseYaml: (text: string) => unknown
    /** Fetches the document, which must not receive the credential of the API; `send` by default. */
    readonly sendForDocument?: Send
  }

const maxAnswerBytes = 8 * 1024 * 1024
const answerTimeoutMs = 120_000
const idleTimeoutMs = 60_000
const maxCalls = 256

/** Compiled tools of a document. */
type Api = {
  readonly document: ApiDocument
  /** JSON text of `tools/list`'s result. */
  readonly listText: string
  readonly calls: ReadonlyMap<string, { operation: Operation; encode: EncodeArguments }>
}

/**
 * Target with the operations of an HTTP API as tools. It is a stateless MCP server, so its sessions can be
 * resumed anywhere. Throws if the document cannot be read.
 */
export function compileOpenApi(targetName: string, config: OpenApiConfig, context: OpenApiContext): Target {
  const address = compileAddress(targetName, config, '', context)
  const { send, sendForDocument = send } = context
  const source = createSource(targetName, config.schema, { ...context, send: sendForDocument })
  const api = compiledOnce(source, address)
  const open = () => createSession({ address, targetName, context, api })
  return { name: targetName, sessionless: false, open, resume: open }
}

function compiledOnce(source: DocumentSource, address: TargetAddress): () => Promise<Api> {
  let compiled: Api | undefined
  return async () => {
    const document = await source()
    if (compiled?.document !== document) compiled = compileApi(document, address)
    return compiled
  }
}

function compileApi(document: ApiDocument, { path }: TargetAddress): Api {
  const basePath = (path === '' ? document.serverPath : path).replace(/\/+$/, '')
  const operations = [...document.operations.values()]
  return {
    document,
    listText: JSON.stringify({ tools: operations.map(({ tool }) => tool) }),
    calls: new Map(
      operations.map((operation) => [
        operation.name,
        { operation, encode: compileArguments(operation, basePath) },
      ]),
    ),
  }
}

type SessionOptions = {
  address: TargetAddress
  targetName: string
  context: OpenApiContext
  api: () => Promise<Api>
}

const knownVersions = new Set(['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25'])
const newestVersion = '2025-11-25'

function createSession({ address, targetName, context, api }: SessionOptions): TargetSession {
  const { log, send } = context
  /** Pending calls by request id as JSON text. */
  const pending = new Map<string, { cancellation: CancellationSource; sink: MessageSink }>()

  return {
    request(message, call, sink) {
      const cancellation = createCancellation()
      const json = readJsonObject(message.text)
      const id = (json.kind === 'object' ? memberText(json, 'id') : undefined) ?? 'null'
      if (pending.size >= maxCalls) {
        queueMicrotask(() => deliver(errorText(id, internalError, 'too many pending calls'), sink))
        return flowOf(cancellation)
      }
      const running = { cancellation, sink }
      pending.set(id, running)
      const answer =
        json.kind === 'object'
          ? answerTo(json, id, call, cancellation)
          : Promise.resolve(errorText(id, invalidRequest, 'Invalid Request'))
      answer
        .then(
          (text) => {
            if (!cancellation.cancelled) deliver(text, sink)
          },
          (error: unknown) => {
            if (!cancellation.cancelled) sink.fail({ kind: 'error', error: asGatewayError(error) })
          },
        )
        .finally(() => {
          if (pending.get(id) === running) pending.delete(id)
        })
      return flowOf(cancellation)
    },
    deliver(message) {
      if (message.value['method'] === 'notifications/cancelled') cancel(message.text)
      return Promise.resolve(undefined)
    },
    cancelPending: ({ text }) => cancel(text),
    listen: () => Promise.resolve({ kind: 'none' }),
    state: () => ({}),
    close() {
      for (const { cancellation } of pending.values()) cancellation.cancel()
      pending.clear()
      return Promise.resolve()
    },
    onTerminated() {},
  }

  function cancel(text: string): void {
    const cancelled = readCancelled(text)
    const running = cancelled && pending.get(cancelled.id)
    if (running === undefined || running.cancellation.cancelled) return
    running.cancellation.cancel()
    running.sink.fail(requestCancelled)
  }

  async function answerTo(
    json: JsonText,
    id: string,
    call: CallContext,
    cancellation: CancellationSource,
  ): Promise<string> {
    switch (json.value['method']) {
      case 'initialize':
        return resultOf(id, initializeResult(json.value, (await api()).document))
      case 'ping':
        return resultOf(id, '{}')
      case 'tools/list':
        return resultOf(id, (await api()).listText)
      case 'tools/call':
        return callTool(json, id, call, cancellation)
      default:
        return errorText(id, methodNotFound, 'Method not found')
    }
  }

  async function callTool(
    json: JsonText,
    id: string,
    { headers }: CallContext,
    cancellation: CancellationSource,
  ): Promise<string> {
    const params = paramsOf(json)
    const tool = params?.value['name']
    const known = typeof tool === 'string' ? (await api()).calls.get(tool) : undefined
    if (!params || !known) return errorText(id, invalidParams, `Unknown tool: ${String(tool)}`)
    const encoded = known.encode(memberText(params, 'arguments'))
    if (encoded.kind === 'bad') return resultOf(id, errorResultText(encoded.message))
    const reply = await send({
      origin: address.origin,
      path: encoded.path,
      method: known.operation.method,
      headers: { ...apiHeaders(headers), ...encoded.headers },
      body: encoded.body,
      cancellation,
      firstByteTimeoutMs: answerTimeoutMs,
      idleTimeoutMs,
    })
    const read = await readAll(reply.body, maxAnswerBytes, 'upstream_too_large')
    const body = hideCredentials(read, reply.credentials)
    if (firstHeader(reply.headers, 'content-encoding') !== undefined) {
      throw new GatewayError(
        'upstream_invalid',
        `target "${targetName}" returned an unsupported content-encoding`,
      )
    }
    log.debug({ target: targetName, tool, status: reply.status }, 'API called')
    return resultOf(id, resultText({ status: reply.status, headers: reply.headers, body }))
  }
}

function paramsOf(json: JsonText): JsonText | undefined {
  const text = memberText(json, 'params')
  const params = text === undefined ? undefined : readJsonObject(text)
  return params?.kind === 'object' ? params : undefined
}

function initializeResult({ params }: JsonObject, { title, version }: ApiDocument): string {
  const asked = isJsonObject(params) ? params['protocolVersion'] : undefined
  return JSON.stringify({
    protocolVersion: typeof asked === 'string' && knownVersions.has(asked) ? asked : newestVersion,
    capabilities: { tools: {} },
    serverInfo: { name: title, version },
  })
}

/** Headers of the MCP request without meaning for the API. */
const mcpHeaders = [
  'accept',
  'content-type',
  'last-event-id',
  'mcp-protocol-version',
  'mcp-session-id',
  'origin',
]

function apiHeaders(headers: Headers): Headers {
  const kept: Headers = { ...headers }
  for (const header of mcpHeaders) delete kept[header]
  return { ...kept, accept: 'application/json, */*;q=0.5', 'accept-encoding': 'identity' }
}

function resultOf(id: string, result: string): string {
  return `{"jsonrpc":"2.0","id":${id},"result":${result}}`
}

function deliver(text: string, sink: MessageSink): void {
  sink.message(asMessage(text))
  sink.end()
}

function asMessage(text: string): Message {
  const value: JsonObject = JSON.parse(text)
  return { text, value }
}

function flowOf(cancellation: CancellationSource): MessageFlow {
  return { resume() {}, cancel: cancellation.cancel }
}
