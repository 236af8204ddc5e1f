import type { Path } from '../../schema/path.ts'
import { alternativesOf, childShapes, type Shape } from '../../schema/shape.ts'

/** A key of agentgateway that this version does not support: planned for a later version, or out of scope. */
type Support = 'planned' | 'unsupported'

/** Policies of gateways, routes, backends, `llm`, `mcp` and `ui`. */
const policies: Record<string, Support> = {
  a2a: 'unsupported',
  ai: 'planned',
  apiKey: 'planned',
  authorization: 'planned',
  backendAuth: 'planned',
  backendTLS: 'planned',
  backendTunnel: 'unsupported',
  basicAuth: 'planned',
  buffer: 'unsupported',
  cors: 'planned',
  csrf: 'planned',
  delay: 'unsupported',
  directResponse: 'planned',
  extAuthz: 'unsupported',
  extProc: 'unsupported',
  guardrails: 'planned',
  health: 'planned',
  http: 'planned',
  jwtAuth: 'planned',
  localRateLimit: 'planned',
  mcpAuthentication: 'planned',
  mcpAuthorization: 'planned',
  mcpGuardrails: 'unsupported',
  oidc: 'planned',
  rateLimit: 'planned',
  remoteRateLimit: 'planned',
  requestHeaderModifier: 'planned',
  requestMirror: 'unsupported',
  requestRedirect: 'planned',
  responseHeaderModifier: 'planned',
  retry: 'planned',
  sessionAffinity: 'unsupported',
  tcp: 'unsupported',
  timeout: 'planned',
  transformations: 'unsupported',
  urlRewrite: 'planned',
}

/** `policies.ai`. */
const aiPolicy: Record<string, Support> = {
  postConversionTransformations: 'unsupported',
  promptCaching: 'unsupported',
  promptGuard: 'planned',
  prompts: 'unsupported',
  transformations: 'unsupported',
}

/** Request and response guards at `place`. */
function guardsAt(place: string): Record<string, Record<string, Support>> {
  const guard: Record<string, Support> = {
    azureContentSafety: 'unsupported',
    bedrockGuardrails: 'unsupported',
    googleModelArmor: 'unsupported',
    openAIModeration: 'unsupported',
    scope: 'unsupported',
  }
  const entries = [`${place}.request[]`, `${place}.response[]`].map((entry) => ({
    [entry]: guard,
    [`${entry}.webhook.target`]: { service: 'unsupported' as const },
  }))
  return Object.assign({}, ...entries)
}

/** `provider` of an LLM backend. */
const aiProviders: Record<string, Support> = {
  azure: 'planned',
  azureOpenAI: 'planned',
  bedrock: 'planned',
  copilot: 'unsupported',
  vertex: 'planned',
}

/** LLM backend at `place`, and the providers of its groups. */
function aiBackendAt(place: string): Record<string, Record<string, Support>> {
  const entries = [place, `${place}.groups[].providers[]`].map((entry) => ({
    [entry]: { tokenize: 'unsupported' as const },
    [`${entry}.provider`]: aiProviders,
    [`${entry}.policies`]: policies,
    [`${entry}.policies.ai`]: aiPolicy,
  }))
  return Object.assign({}, ...entries)
}

/** Keys by the path of their object; `[]` stands for any item and `*` for any key. */
const knownKeys: Record<string, Record<string, Support>> = {
  '': {
    backends: 'planned',
    binds: 'planned',
    config: 'planned',
    frontendPolicies: 'planned',
    gateways: 'planned',
    llm: 'planned',
    mcp: 'planned',
    policies: 'unsupported',
    routeGroups: 'unsupported',
    routes: 'planned',
    services: 'unsupported',
    tcpRoutes: 'planned',
    ui: 'planned',
    workloads: 'unsupported',
  },
  config: {
    adminAddr: 'planned',
    backend: 'unsupported',
    connectionMinTerminationDeadline: 'unsupported',
    connectionTerminationDeadline: 'planned',
    customFunctions: 'unsupported',
    database: 'planned',
    dns: 'unsupported',
    enableIpv6: 'unsupported',
    hbone: 'unsupported',
    logging: 'planned',
    mcp: 'planned',
    metrics: 'unsupported',
    modelCatalog: 'planned',
    readinessAddr: 'planned',
    sensitiveHeaders: 'unsupported',
    session: 'planned',
    spiffe: 'unsupported',
    standardAttributes: 'unsupported',
    statsAddr: 'planned',
    storage: 'planned',
    tracing: 'planned',
    workerThreads: 'unsupported',
    xds: 'unsupported',
  },
  'gateways.*': { ...policies, listeners: 'planned', protocol: 'planned', tls: 'planned' },
  'gateways.*.listeners[]': { ...policies, hostname: 'planned', protocol: 'planned', tls: 'planned' },
  'routes[]': { namespace: 'unsupported', ruleName: 'unsupported' },
  'routes[].policies': policies,
  'routes[].policies.ai': aiPolicy,
  'routes[].backends[].policies': policies,
  'routes[].backends[].policies.ai': aiPolicy,
  ...aiBackendAt('routes[].backends[].ai'),
  'routes[].backends[]': {
    ai: 'planned',
    aws: 'unsupported',
    dynamic: 'unsupported',
    internal: 'unsupported',
    mcp: 'planned',
    policies: 'planned',
    routeGroup: 'unsupported',
    service: 'unsupported',
    weight: 'planned',
  },
  'tcpRoutes[].policies': policies,
  'backends[]': { ai: 'planned', aws: 'unsupported', internal: 'unsupported', mcp: 'planned' },
  'backends[].policies': policies,
  'binds[].listeners[].policies': policies,
  'backends[].policies.ai': aiPolicy,
  ...aiBackendAt('backends[].ai'),
  llm: {
    gateways: 'planned',
    guardrails: 'planned',
    policies: 'planned',
    providers: 'planned',
    tls: 'planned',
    virtualModels: 'planned',
  },
  'llm.policies': policies,
  ...guardsAt('llm.guardrails'),
  ...guardsAt('llm.policies.guardrails'),
  ...guardsAt('llm.models[].guardrails'),
  ...guardsAt('routes[].policies.ai.promptGuard'),
  ...guardsAt('routes[].backends[].policies.ai.promptGuard'),
  'llm.models[]': {
    auth: 'unsupported',
    authorization: 'unsupported',
    backendTunnel: 'unsupported',
    defaults: 'planned',
    finalTransformation: 'unsupported',
    guardrails: 'planned',
    health: 'unsupported',
    id: 'planned',
    matches: 'planned',
    overrides: 'planned',
    passthrough: 'unsupported',
    promptCaching: 'unsupported',
    requestHeaders: 'unsupported',
    responseHeaders: 'unsupported',
    tls: 'unsupported',
    transformation: 'unsupported',
    visibility: 'planned',
  },
  'llm.models[].params': {
    awsRegion: 'planned',
    azureApiVersion: 'planned',
    azureProjectName: 'planned',
    azureResourceName: 'planned',
    azureResourceType: 'planned',
    hostOverride: 'unsupported',
    pathOverride: 'unsupported',
    pathPrefix: 'unsupported',
    tokenize: 'unsupported',
    vertexProject: 'planned',
    vertexRegion: 'planned',
  },
  'llm.policies.apiKey.keys[]': { budgets: 'unsupported', scopes: 'unsupported' },
  'llm.policies.cors': { maxAge: 'planned' },
  mcp: {
    dnsRebindingProtection: 'unsupported',
    failureMode: 'planned',
    gateways: 'planned',
    prefixMode: 'planned',
    statefulMode: 'planned',
  },
  'mcp.policies': policies,
  'mcp.targets[].policies': policies,
  'routes[].backends[].mcp.targets[].policies': policies,
  'backends[].mcp.targets[].policies': policies,
  'mcp.targets[]': {
    mcp: 'planned',
    openapi: 'planned',
    policies: 'planned',
    sse: 'planned',
    stdio: 'planned',
  },
  ui: { gateways: 'planned', policies: 'planned' },
  'ui.policies': policies,
  frontendPolicies: { accessLog: 'planned', http: 'planned', tracing: 'planned' },
  ...Object.fromEntries(
    ['gateways.*', 'gateways.*.listeners[]', 'routes[].policies', 'llm.policies', 'mcp.policies']
      .flatMap((place) => [`${place}.remoteRateLimit`, `${place}.rateLimit.global`])
      .map((place) => [place, { policies: 'unsupported', service: 'unsupported' }] as const),
  ),
}

const replacements: Record<string, string> = {
  'llm.models[].params.hostOverride': 'use baseUrl',
  'llm.models[].params.pathOverride': 'use baseUrl',
  'llm.models[].params.pathPrefix': 'use baseUrl',
  'config.connectionMinTerminationDeadline': 'use connectionTerminationDeadline',
}

/** Objects of the configuration that have policies, with their names in messages. */
const policyPlaces: readonly (readonly [name: string, path: Path])[] = [
  ['gateways', ['gateways', '*']],
  ['routes', ['routes', 0, 'policies']],
  ['backends of routes', ['routes', 0, 'backends', 0, 'policies']],
  ['named backends', ['backends', 0, 'policies']],
  ['TCP routes', ['tcpRoutes', 0, 'policies']],
  ['llm', ['llm', 'policies']],
  ['mcp', ['mcp', 'policies']],
  ['MCP targets', ['mcp', 'targets', 0, 'policies']],
  ['ui', ['ui', 'policies']],
]

/**
 * Message for an unknown key at `path` that another place of the configuration (`root`) has, or that
 * agentgateway has; undefined for any other key.
 */
export function unsupportedKeyMessage(path: Path, root: Shape): string | undefined {
  const key = String(path.at(-1))
  const place = placeOf(path.slice(0, -1))
  const keys = Object.hasOwn(knownKeys, place) ? knownKeys[place] : undefined
  const support = keys !== undefined && Object.hasOwn(keys, key) ? keys[key] : undefined
  if (support === undefined) return undefined
  const validPlaces = Object.hasOwn(policies, key) && hasPolicies(place) ? placesWith(key, root) : []
  if (validPlaces.length > 0) return `${key} is only valid on ${enumerated(validPlaces)}`
  if (support === 'planned') return `agentgateway's ${key} is not supported yet in this version`
  const replacement = replacements[`${place}.${key}`]
  return `agentgateway's ${key} is not supported${replacement === undefined ? '' : `: ${replacement}`}`
}

/** Whether the object at a place has policies, under `policies` or among its own keys. */
function hasPolicies(place: string): boolean {
  return place.endsWith('policies') || place.startsWith('gateways.*')
}

/** Names of the places whose policies include `key`. */
function placesWith(key: string, root: Shape): string[] {
  return policyPlaces.flatMap(([name, path]) => {
    const shapes = path.reduce<readonly Shape[]>(childShapes, alternativesOf(root))
    return shapes.some((shape) => shape.kind === 'object' && shape.fields.has(key)) ? [name] : []
  })
}

function enumerated(names: readonly string[]): string {
  const last = names.at(-1) ?? ''
  return names.length < 2 ? last : `${names.slice(0, -1).join(', ')} and ${last}`
}

/** Path of an object as in `knownKeys`. Only gateways have names that the user chooses. */
function placeOf(path: Path): string {
  const [first, , ...rest] = path
  const generic = first === 'gateways' && path.length > 1 ? ['gateways.*', ...rest] : path
  const place = generic.reduce<string>((before, step) => {
    if (typeof step === 'number') return `${before}[]`
    return before === '' ? step : `${before}.${step}`
  }, '')
  // Routes inside `binds` have the keys of `routes`.
  return place.replace(/^binds\[\]\.listeners\[\]\.(?=routes\[\]|tcpRoutes\[\])/, '')
}
