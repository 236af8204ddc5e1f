import type { Path } from '../../schema/path.ts'

/** A key of the reference product: `planned` ones come in a later version, the others are outside of what Tollgate does. */
type Standing = 'planned' | 'unsupported'

/** Policies that may stand at a gateway, a route, a backend, `llm`, `mcp` or `ui`. */
const policies: Record<string, Standing> = {
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
const aiPolicy: Record<string, Standing> = {
  postConversionTransformations: 'unsupported',
  promptCaching: 'unsupported',
  promptGuard: 'planned',
  prompts: 'unsupported',
  transformations: 'unsupported',
}

/** Guards of requests and answers at `place`. */
function guardsAt(place: string): Record<string, Record<string, Standing>> {
  const guard: Record<string, Standing> = {
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
const aiProviders: Record<string, Standing> = {
  azure: 'planned',
  azureOpenAI: 'planned',
  bedrock: 'planned',
  copilot: 'unsupported',
  vertex: 'planned',
}

/** What an LLM backend at `place` has, alone or as one of a group. */
function aiBackendAt(place: string): Record<string, Record<string, Standing>> {
  const entries = [place, `${place}.groups[].providers[]`].map((entry) => ({
    [entry]: { tokenize: 'unsupported' as const },
    [`${entry}.provider`]: aiProviders,
    [`${entry}.policies`]: policies,
    [`${entry}.policies.ai`]: aiPolicy,
  }))
  return Object.assign({}, ...entries)
}

/** By the path of the object that holds them, with `[]` for any item and `*` for any key. */
const knownKeys: Record<string, Record<string, Standing>> = {
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

const insteadOf: Record<string, string> = {
  'llm.models[].params.hostOverride': 'use baseUrl',
  'llm.models[].params.pathOverride': 'use baseUrl',
  'llm.models[].params.pathPrefix': 'use baseUrl',
  'config.connectionMinTerminationDeadline': 'use connectionTerminationDeadline',
}

/** What to say of a key that this version does not take but the reference product does; undefined for any other key. */
export function unsupportedKeyMessage(path: Path): string | undefined {
  const key = String(path.at(-1))
  const place = placeOf(path.slice(0, -1))
  const keys = Object.hasOwn(knownKeys, place) ? knownKeys[place] : undefined
  const standing = keys !== undefined && Object.hasOwn(keys, key) ? keys[key] : undefined
  if (standing === undefined) return undefined
  if (standing === 'planned') return `agentgateway's ${key} is not supported yet in this version`
  const instead = insteadOf[`${place}.${key}`]
  return `agentgateway's ${key} is not supported${instead === undefined ? '' : `: ${instead}`}`
}

/** Only gateways are kept by names of the user's choice. */
function placeOf(path: Path): string {
  const [first, , ...rest] = path
  const generic = first === 'gateways' && path.length > 1 ? ['gateways.*', ...rest] : path
  return generic.reduce<string>((place, step) => {
    if (typeof step === 'number') return `${place}[]`
    return place === '' ? step : `${place}.${step}`
  }, '')
}
