import { firstHeader } from '../../net/http/headers.ts'
import type { Reply } from '../../net/http-client/send.ts'
import { refusal } from '../change/change.ts'
import type { FileText } from '../resources.ts'
import type { ApiPath } from './path.ts'
import { readQuery } from './query.ts'
import { readBody } from './read-body.ts'
import { json, notAllowed, refuse } from './replies.ts'
import { type ApiOptions, type ApiRequest, requesterOf } from './request.ts'

const noFile = refusal(404, 'the configuration comes from objects, not from a file')

/** Reads or replaces the configuration file as a text. A read returns secrets in clear, and is logged. */
export async function respondToFile(
  { query: queryText }: Extract<ApiPath, { kind: 'file' }>,
  request: ApiRequest,
  options: ApiOptions,
): Promise<Reply> {
  const isRead = request.method === 'GET' || request.method === 'HEAD'
  if (!isRead && request.method !== 'PUT') return notAllowed(request.method, 'GET, HEAD, PUT', request)
  const query = readQuery(queryText, isRead ? 'document' : 'text')
  if (query.kind === 'invalid') return refuse(refusal(400, query.message), request)
  const { text } = options.resources
  if (text === undefined) return refuse(noFile, request)
  return isRead
    ? await readFile(text, request, options)
    : await writeFile(text, query.dryRun, { request, options })
}

async function readFile(
  { read, path, readOnly }: FileText,
  request: ApiRequest,
  { log, flushLog }: ApiOptions,
): Promise<Reply> {
  const found = await read()
  if (found.kind === 'refused') return refuse(found, request)
  const { address, principal } = request
  log.audit({ op: 'reveal', kind: 'file', address, principal }, 'configuration file read')
  await flushLog()
  const { text, revision } = found
  const reason = readOnly === undefined ? {} : { reason: readOnly.message }
  const value = { text, revision, path, readOnly: readOnly !== undefined, ...reason }
  return json(200, value, { etag: `"${revision}"` })
}

async function writeFile(
  file: FileText,
  dryRun: boolean,
  { request, options }: { request: ApiRequest; options: ApiOptions },
): Promise<Reply> {
  const ifMatch = firstHeader(request.headers, 'if-match')
  if (ifMatch === undefined && !dryRun)
    return refuse(refusal(400, 'if-match must be the revision of the file that the text replaces'), request)
  const body = await readBody(request, options.workQueue)
  if (body.kind === 'refused') return refuse(body, request)
  const { text, ...rest } = body.value
  const [stray] = Object.keys(rest)
  if (stray !== undefined)
    return refuse(refusal(422, `unknown member ${stray.slice(0, 100)}: known is text`), request)
  if (typeof text !== 'string') return refuse(refusal(422, 'text must be the text of the file'), request)
  const { allowances } = options
  const outcome = await file.replace({ text, dryRun, ifMatch, allowances }, requesterOf(request))
  await options.flushLog()
  if (outcome.kind === 'refused') return refuse(outcome, request)
  const { kind: _, ...result } = outcome
  const { mistakes, revision } = result
  if (!dryRun && mistakes.length > 0) {
    const lines = mistakes.map(({ line, column, path, message }) => {
      const place = line === undefined ? '' : `line ${line}, column ${column}: `
      return `${place}${path === '' ? '' : `${path}: `}${message}`
    })
    return refuse(refusal(422, lines.join('\n')), request)
  }
  return json(200, result, dryRun ? {} : { etag: `"${revision}"` })
}
