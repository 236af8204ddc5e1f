import type { ExplainedRequest, RequestExplanation } from '../../config/inspection/explain-request.ts'
import { isToken } from '../../lib/http-token.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '../../lib/json/json.ts'
import type { Headers } from '../../net/http/headers.ts'
import { isHost } from '../../pipeline/client-address.ts'
import { body, type OpenApiPart, responses } from '../../resources/api/openapi-part.ts'
import { type Refusal, refusal } from '../../resources/change/change.ts'
import type { AdminCall, AdminEndpoint, AdminResult } from '../api.ts'

const path = '/api/routes/explain'

/** Endpoint of the route of a request: the selected one, and the reasons for which others are not. */
export function routesExplainEndpoint(
  explain: (request: ExplainedRequest) => Promise<RequestExplanation>,
): AdminEndpoint {
  return { path, methods: { POST: { respond: (call) => respond(call, explain) } } }
}

async function respond(
  { readJson }: AdminCall,
  explain: (request: ExplainedRequest) => Promise<RequestExplanation>,
): Promise<AdminResult> {
  const read = await readJson()
  if (read.kind === 'refused') return read
  const request = readRequest(read.value)
  if (request.kind === 'refused') return request
  const explained = await explain(request.request)
  if (explained.kind === 'refused') return refusal(422, explained.message)
  const { kind: _, ...value } = explained
  return { kind: 'json', value }
}

const maxText = 8_192
const maxHeaders = 200

function readRequest(
  sent: JsonObject,
): { readonly kind: 'request'; readonly request: ExplainedRequest } | Refusal {
  const { gateway, port, method = 'GET', host, path = '/', headers = {}, query = {}, ...rest } = sent
  const [stray] = Object.keys(rest)
  if (stray !== undefined) return refusal(422, `unknown member ${stray.slice(0, 100)}`)
  if (gateway !== undefined && !isText(gateway)) return refusal(422, 'gateway must be the name of a gateway')
  if (port !== undefined && !(typeof port === 'number' && Number.isInteger(port)))
    return refusal(422, 'port must be a number')
  if (!isText(method) || !isToken(method)) return refusal(422, 'method must be a token such as GET')
  if (!isText(host) || !isHost(host)) return refusal(422, 'host must be a host such as api.example.com')
  if (!isText(path) || !path.startsWith('/')) return refusal(422, 'path must begin with /')
  const fields = readHeaders(headers, host)
  if (fields.kind === 'refused') return fields
  const parameters = readQuery(query)
  if (parameters.kind === 'refused') return parameters
  const added = parameters.text === '' ? '' : `${path.includes('?') ? '&' : '?'}${parameters.text}`
  const target = `${path}${added}`
  return { kind: 'request', request: { gateway, port, method, host, path: target, headers: fields.headers } }
}

function isText(value: JsonValue | undefined): value is string {
  return typeof value === 'string' && value !== '' && value.length <= maxText
}

function readHeaders(
  sent: JsonValue,
  host: string,
): { readonly kind: 'headers'; readonly headers: Headers } | Refusal {
  if (!isJsonObject(sent) || Object.keys(sent).length > maxHeaders)
    return refusal(422, `headers must be an object of at most ${maxHeaders} texts`)
  const headers: Headers = { host }
  for (const [name, value] of Object.entries(sent)) {
    if (!isToken(name)) return refusal(422, `headers: "${name.slice(0, 100)}" is not a header name`)
    if (typeof value !== 'string' || value.length > maxText)
      return refusal(422, `headers.${name} must be a text of at most ${maxText} characters`)
    headers[name.toLowerCase()] = value
  }
  return { kind: 'headers', headers }
}

/** A query as an object of texts, or as text. */
function readQuery(sent: JsonValue): { readonly kind: 'query'; readonly text: string } | Refusal {
  if (typeof sent === 'string' && sent.length <= maxText)
    return { kind: 'query', text: sent.startsWith('?') ? sent.slice(1) : sent }
  if (!isJsonObject(sent)) return refusal(422, 'query must be an object of texts')
  const parameters = new URLSearchParams()
  for (const [name, value] of Object.entries(sent)) {
    if (typeof value !== 'string' || value.length > maxText)
      return refusal(422, `query.${name.slice(0, 100)} must be a text of at most ${maxText} characters`)
    parameters.append(name, value)
  }
  return { kind: 'query', text: parameters.toString() }
}

const text = { type: 'string' }
const texts = { type: 'array', items: text }
const match = { name: text, match: text, hostname: text }

/** OpenAPI of the endpoint. */
export const routesExplainOpenApi: OpenApiPart = {
  paths: {
    [path]: {
      post: {
        summary: 'Route, policies and backend of a request, and why other routes do not receive it.',
        requestBody: body({
          type: 'object',
          required: ['host'],
          properties: {
            gateway: {
              ...text,
              description: 'Gateway, listener, `llm` or `mcp`; the default one if absent.',
            },
            port: { type: 'integer', description: 'Port, instead of a gateway.' },
            method: { ...text, default: 'GET' },
            host: text,
            path: { ...text, default: '/', description: 'Path, with or without a query.' },
            headers: { type: 'object', additionalProperties: text },
            query: { type: 'object', additionalProperties: text },
          },
        }),
        responses: responses({
          type: 'object',
          properties: {
            listener: {
              type: 'object',
              properties: { gateway: text, name: text, port: { type: 'integer' }, protocol: text, tls: {} },
            },
            path: { ...text, description: 'Normalised path.' },
            route: { type: 'object', description: 'Absent if no route matches: 404.', properties: match },
            policies: { ...texts, description: 'Policies of the route, in order.' },
            backend: { type: 'object', properties: { kind: text, targets: texts, settings: texts } },
            others: {
              type: 'array',
              items: {
                type: 'object',
                properties: { route: text, hostname: text, match: text, reason: text },
              },
            },
          },
        }),
      },
    },
  },
}
