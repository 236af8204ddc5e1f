import { GatewayError } from '../../lib/gateway-error.ts'
import { isSource } from '../../net/http/body.ts'
import { firstHeader } from '../../net/http/headers.ts'
import type { Reply } from '../../net/http-client/send.ts'
import { type Refusal, refusal } from '../change/change.ts'
import { effectiveConfig } from '../effective.ts'
import { findKind } from '../kinds.ts'
import { respondToFile } from './config-file.ts'
import { generateKeys, withGeneratedKeys } from './generated-keys.ts'
import { respondToHistory } from './history.ts'
import { kindSchema } from './kind-schema.ts'
import { openApiDocument } from './openapi.ts'
import { type ApiPath, readRequestTarget } from './path.ts'
import { type ApiUse, readQuery } from './query.ts'
import { maxBodyBytes } from './read-body.ts'
import { type KindPath, readChange, readImport } from './read-change.ts'
import { changeReply, itemReply, listReply } from './record-replies.ts'
import { largeJson, notAllowed, refuse } from './replies.ts'
import { type ApiOptions, type ApiRequest, requesterOf } from './request.ts'

/** Changes are serialised; with an unresponsive database, each takes ten seconds. */
const maxWaitingChanges = 1_000

const changeMethods: ReadonlySet<string> = new Set(['PUT', 'DELETE', 'POST'])

/**
 * The config resource API (specification, "Config resource API"; decisions 6). Responds to all paths under
 * `/api/config`. Requests are not authenticated here: the caller authorises the client.
 */
export function createConfigApi(options: ApiOptions): (request: ApiRequest) => Promise<Reply> {
  let waitingChanges = 0
  return async (request) => {
    const isChange = changeMethods.has(request.method)
    if (isChange) waitingChanges += 1
    try {
      if (isChange && waitingChanges > maxWaitingChanges) {
        return refuse(refusal(503, 'too many changes are waiting; try again later'), request)
      }
      if (!isChange) return await respond(request, options)
      const requestId = options.newRequestId()
      const reply = await respond({ ...request, requestId }, options)
      return { ...reply, headers: { ...reply.headers, 'x-request-id': requestId } }
    } catch (error) {
      return refuse(refusalOf(error, options), request)
    } finally {
      if (isChange) waitingChanges -= 1
      // An unread body would block the connection.
      if (isSource(request.body)) request.body.cancel()
    }
  }
}

function refusalOf(error: unknown, { log }: ApiOptions): Refusal {
  if (error instanceof GatewayError && error.code === 'request_too_large') {
    return refusal(413, `the body is larger than ${maxBodyBytes} bytes`)
  }
  // The client closed the connection or stopped sending: not an error of this process.
  if (error instanceof GatewayError && error.code === 'request_aborted') {
    return refusal(400, 'the body is not complete')
  }
  log.error({ err: error }, 'a request to the config resource API failed')
  return refusal(500, 'internal error')
}

async function respond(request: ApiRequest, options: ApiOptions): Promise<Reply> {
  const path = readRequestTarget(request.target)
  switch (path.kind) {
    case 'unknown':
      return refuse(refusal(404, 'there is no such resource of the admin API'), request)
    case 'malformed':
      return refuse(refusal(400, path.message), request)
    case 'document': {
      const query = readQuery(path.query, 'document')
      if (query.kind === 'invalid') return refuse(refusal(400, query.message), request)
      return refuseWrite(request) ?? (await largeJson(await documents[path.name](options), options))
    }
    case 'file':
      return await respondToFile(path, request, options)
    case 'kindSchema':
      return await schemaReply(path, request, options)
    case 'history':
    case 'recordedChange':
    case 'revert':
      return await respondToHistory(path, request, options)
    case 'all':
      return await respondToAll(path.query, request, options)
    case 'collection':
    case 'item':
      return await respondToKind(path, request, options)
  }
}

async function schemaReply(
  { kindName, query: queryText }: Extract<ApiPath, { kind: 'kindSchema' }>,
  request: ApiRequest,
  options: ApiOptions,
): Promise<Reply> {
  const query = readQuery(queryText, 'schema')
  if (query.kind === 'invalid') return refuse(refusal(400, query.message), request)
  const kind = findKind(kindName)
  if (kind === undefined) return refuse(unsupportedKind(kindName), request)
  const name = query.filter?.name
  if (name !== undefined && kind.placement.kind !== 'policies')
    return refuse(refusal(400, `name is for kinds of policies, not for ${kind.name}`), request)
  const schema = kindSchema(kind, await options.readSchema(), name)
  if (schema === undefined)
    return refuse(refusal(404, `${kind.name} has no policy ${name?.slice(0, 100)}`), request)
  return refuseWrite(request) ?? (await largeJson(schema, options))
}

function unsupportedKind(name: string): Refusal {
  return refusal(400, `unsupported config resource kind: ${name.slice(0, 200)}`)
}

const documents = {
  status: ({ resources, status, ledger, version }: ApiOptions) => ({
    version,
    ...status(),
    pending: resources.pending(),
    storage: resources.status(),
    ledger: ledger(),
  }),
  schema: ({ readSchema }: ApiOptions) => readSchema(),
  effective: ({ resources }: ApiOptions) => effectiveConfig(resources),
  openapi: async ({ readSchema, version, openApiParts }: ApiOptions) =>
    openApiDocument(await readSchema(), version, openApiParts),
}

/** Lists or imports records of all kinds. */
async function respondToAll(queryText: string, request: ApiRequest, options: ApiOptions): Promise<Reply> {
  const isImport = request.method === 'PUT' && new URLSearchParams(queryText).has('import')
  const query = readQuery(queryText, isImport ? 'import' : 'list')
  if (query.kind === 'invalid') return refuse(refusal(400, query.message), request)
  if (!isImport) return refuseWrite(request) ?? (await listReply(undefined, query, request, options))
  if (firstHeader(request.headers, 'if-match') !== undefined) return refuse(unsupportedIfMatch, request)
  const read = await readImport(request, options)
  if (read.kind === 'refused') return refuse(read, request)
  const change = { change: read.change, dryRun: query.dryRun, ifMatch: undefined }
  const outcome = await options.resources.change(change, requesterOf(request))
  await options.flushLog()
  return changeReply(outcome, { isItem: false, query }, request, options)
}

async function respondToKind(path: KindPath, request: ApiRequest, options: ApiOptions): Promise<Reply> {
  const kind = findKind(path.kindName)
  if (kind === undefined) {
    return refuse(unsupportedKind(path.kindName), request)
  }
  const { method } = request
  const { resources } = options
  const isItem = path.kind === 'item'
  const use = useOf(path, method)
  if (use === undefined) {
    return notAllowed(method, isItem ? 'GET, HEAD, PUT, DELETE' : 'GET, HEAD, PUT', request)
  }
  const query = readQuery(path.query, use)
  if (query.kind === 'invalid') return refuse(refusal(400, query.message), request)
  if (path.kind === 'item' && use === 'read') {
    return await itemReply(kind, path.id, { query, request, options })
  }
  if (use === 'list') return await listReply(kind, query, request, options)
  const read = await readChange({ path, kind, retain: query.retain }, request, options)
  if (read.kind === 'refused') return refuse(read, request)
  const ifMatch = firstHeader(request.headers, 'if-match')
  if (ifMatch !== undefined && !isItem) return refuse(unsupportedIfMatch, request)
  const generation = generateKeys(read.change, options.randomBytes)
  const change = { change: generation.change, dryRun: query.dryRun, ifMatch }
  const outcome = await resources.change(change, requesterOf(request))
  await options.flushLog()
  return changeReply(withGeneratedKeys(outcome, generation, query), { isItem, query }, request, options)
}

const unsupportedIfMatch = refusal(400, 'if-match is for changes of a single record')

function useOf({ kind }: KindPath, method: string): ApiUse | undefined {
  switch (method) {
    case 'GET':
    case 'HEAD':
      return kind === 'item' ? 'read' : 'list'
    case 'PUT':
      return 'write'
    case 'DELETE':
      return kind === 'item' ? 'remove' : undefined
    default:
      return undefined
  }
}

function refuseWrite(request: ApiRequest): Reply | undefined {
  const { method } = request
  return method === 'GET' || method === 'HEAD' ? undefined : notAllowed(method, 'GET, HEAD', request)
}
