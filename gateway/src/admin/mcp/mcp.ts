import type { McpAnswer, McpClient, McpQuestion } from '../../config/mcp-inspection.ts'
import { isJsonObject, type JsonObject } from '../../lib/json/json.ts'
import { body, type Json, type OpenApiPart, responses } from '../../resources/api/openapi-part.ts'
import { type Refusal, refusal } from '../../resources/change/change.ts'
import type { AdminCall, AdminEndpoint, AdminResult } from '../api.ts'

const targetsPath = '/api/mcp/targets'
const targetPath = '/api/mcp/targets/{name}'
const visiblePath = '/api/mcp/visible'

type Ask = (question: McpQuestion) => Promise<McpAnswer>

/** Endpoints of live lists of MCP servers, and of the rules that apply to their items. */
export function mcpEndpoints(ask: Ask): AdminEndpoint[] {
  return [
    {
      path: targetsPath,
      methods: { GET: { query: ['refresh'], respond: (call) => listTargets(call, ask) } },
    },
    {
      path: targetPath,
      methods: { GET: { query: ['refresh'], respond: (call) => readTarget(call, ask) } },
    },
    { path: visiblePath, methods: { POST: { respond: (call) => listVisible(call, ask) } } },
  ]
}

async function listTargets({ query }: AdminCall, ask: Ask): Promise<AdminResult> {
  const { kind: _, ...value } = await ask({ kind: 'targets', refresh: query.get('refresh') === 'true' })
  return { kind: 'json', value }
}

async function readTarget({ parameters, query }: AdminCall, ask: Ask): Promise<AdminResult> {
  const name = parameters.get('name') ?? ''
  const answer = await ask({ kind: 'target', name, refresh: query.get('refresh') === 'true' })
  const target = answer.kind === 'target' ? answer.target : undefined
  if (target === undefined) return refusal(404, `no MCP server has the name ${name.slice(0, 200)}`)
  const { lists, tools, prompts, resources, ...value } = target
  return {
    kind: 'json',
    value: { ...value, counts: { tools, prompts, resources }, ...lists },
  }
}

async function listVisible({ readJson }: AdminCall, ask: Ask): Promise<AdminResult> {
  const read = await readJson()
  if (read.kind === 'refused') return read
  const client = readClient(read.value)
  if (client.kind === 'refused') return client
  const { kind: _, ...value } = await ask({ ...client.client, kind: 'visible' })
  return { kind: 'json', value }
}

const known = ['claims', 'apiKey', 'allowedTargets', 'source', 'headers']

function readClient(sent: JsonObject): { kind: 'client'; client: McpClient } | Refusal {
  const unknown = Object.keys(sent).find((name) => !known.includes(name))
  if (unknown !== undefined)
    return refusal(400, `${unknown.slice(0, 100)} is not a known field: ${known.join(', ')}`)
  const { claims, apiKey, allowedTargets, source, headers } = sent
  for (const [name, value] of Object.entries({ claims, apiKey, headers }))
    if (value !== undefined && value !== null && !isJsonObject(value))
      return refusal(400, `${name} must be an object`)
  if (allowedTargets !== undefined && !isTexts(allowedTargets))
    return refusal(400, 'allowedTargets must be a list of texts')
  if (source !== undefined && typeof source !== 'string') return refusal(400, 'source must be an address')
  if (isJsonObject(headers) && !isTexts(Object.values(headers)))
    return refusal(400, 'headers must have texts as values')
  return {
    kind: 'client',
    client: {
      ...(isJsonObject(claims) && { claims }),
      ...(isJsonObject(apiKey) && { apiKey }),
      ...(isTexts(allowedTargets) && { allowedTargets }),
      ...(typeof source === 'string' && { source }),
      ...(isJsonObject(headers) && { headers: lowerCase(headers) }),
    },
  }
}

function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((one) => typeof one === 'string')
}

function lowerCase(headers: JsonObject): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) =>
      typeof value === 'string' ? [[name.toLowerCase(), value]] : [],
    ),
  )
}

const text: Json = { type: 'string' }
const integer: Json = { type: 'integer' }
const object: Json = { type: 'object' }
const objects: Json = { type: 'array', items: object }

const targetProperties: Json = {
  name: text,
  transport: { type: 'string', enum: ['stdio', 'mcp', 'sse', 'openapi'] },
  address: { type: 'string', description: 'Without credentials and arguments.' },
  state: {
    type: 'string',
    enum: ['connected', 'failed', 'pending'],
    description: 'Outcome of the latest session; `pending` while the first one starts.',
  },
  error: text,
  lastSeen: { type: 'string', format: 'date-time' },
}

const targetList: Json = {
  type: 'array',
  items: {
    type: 'object',
    properties: { ...targetProperties, tools: integer, prompts: integer, resources: integer },
  },
}

const rule: Json = {
  type: 'object',
  description: 'The rule that decides; absent if none does.',
  properties: {
    ...{ rules: text, index: integer, expression: text, error: text },
    kind: { type: 'string', enum: ['allow', 'deny', 'require'] },
    result: { type: 'boolean' },
    readsArguments: { type: 'boolean', description: 'The rule decides on each call.' },
  },
}

const items: Json = {
  type: 'array',
  items: {
    type: 'object',
    properties: {
      ...{ target: text, name: text, title: text, reason: text, rule },
      exposedName: { type: 'string', description: 'Name for clients.' },
      visible: { type: 'boolean' },
    },
  },
}

const refresh: Json = {
  name: 'refresh',
  in: 'query',
  required: false,
  description: 'Opens a new session unless the latest is a few seconds old.',
  schema: { type: 'boolean' },
}

export const mcpOpenApi: OpenApiPart = {
  paths: {
    [targetsPath]: {
      get: {
        summary: 'MCP servers of the `mcp` section with the outcome of a session at each.',
        parameters: [refresh],
        responses: responses({ type: 'object', properties: { targets: targetList } }),
      },
    },
    [targetPath]: {
      parameters: [{ name: 'name', in: 'path', required: true, schema: text }],
      get: {
        summary: 'Live lists of one MCP server, without rules.',
        parameters: [refresh],
        responses: responses({
          type: 'object',
          properties: {
            ...targetProperties,
            ...{ protocolVersion: text, serverInfo: object, instructions: text, capabilities: object },
            ...{ tools: objects, prompts: objects, resources: objects, resourceTemplates: objects },
            counts: { type: 'object', additionalProperties: integer },
          },
        }),
      },
    },
    [visiblePath]: {
      post: {
        summary: 'Lists as a client receives them, with the rule that decides on each item.',
        requestBody: body({
          type: 'object',
          additionalProperties: false,
          properties: {
            claims: { type: 'object', description: 'Claims of the token of the client.' },
            apiKey: { type: 'object', description: 'Metadata of the virtual key of the client.' },
            allowedTargets: { type: 'array', items: text, description: '`allowedTargets` of the key.' },
            source: { type: 'string', description: 'Address of the client.' },
            headers: { type: 'object', additionalProperties: text },
          },
        }),
        responses: responses({
          type: 'object',
          properties: {
            targets: targetList,
            hasRules: { type: 'boolean' },
            ...{ tools: items, prompts: items, resources: items, resourceTemplates: items },
          },
        }),
      },
    },
  },
}
