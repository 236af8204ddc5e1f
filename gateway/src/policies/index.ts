import type { CompileContext } from '../pipeline/compile-context.ts'
import type { Policy } from '../pipeline/policy.ts'
import { type Infer, object, optional } from '../schema/dsl.ts'
import { apiKeySchema, checkApiKey, compileApiKey } from './api-key/api-key.ts'
import { authorizationSchema, checkAuthorization, compileAuthorization } from './authorization.ts'
import { type CorsConfig, checkCors, compileCors, compileOrigins, corsSchema } from './cors.ts'
import { checkMcpAuthentication } from './mcp-authentication/check-config.ts'
import { mcpAuthenticationSchema } from './mcp-authentication/config.ts'
import { compileMcpAuthentication } from './mcp-authentication/mcp-authentication.ts'
import {
  checkMcpAuthorization,
  compileMcpAuthorization,
  type McpAuthorization,
  mcpAuthorizationSchema,
} from './mcp-authorization.ts'
import { compileOrigin } from './origin.ts'
import { compileLocalRateLimit } from './rate-limit/local.ts'
import {
  checkLocalRateLimit,
  type LocalRateLimitConfig,
  localRateLimitSchema,
} from './rate-limit/local-config.ts'

/** A step of a route, and why it is where it is. */
type Step<Steps> = { step: keyof Steps; because: string }

/** The order in which an LLM request meets its policies. Replies meet them in reverse. */
export const llmOrder: readonly Step<LlmSteps>[] = [
  {
    step: 'cors',
    because:
      'a browser can read a refusal only if the reply carries CORS headers; preflights hold no credential',
  },
  { step: 'apiKey', because: 'nothing is done for strangers: no rule, no count, no byte of the body' },
  {
    step: 'authorization',
    because: 'rules that need only the head refuse before anything is counted or read',
  },
  { step: 'requestLimits', because: 'a body is expensive to read, so requests are counted before it is' },
  { step: 'llmRequest', because: 'reads the body, once; what follows may depend on it' },
  { step: 'llmAuthorization', because: 'what may not be asked must not count against a budget' },
  {
    step: 'tokenLimits',
    because: 'the last check that costs nothing: a request over budget reaches no provider',
  },
]

/** The policies of one route by step; a step that is not configured is left out. */
type LlmSteps = {
  cors: Policy | undefined
  apiKey: Policy | undefined
  authorization: Policy | undefined
  requestLimits: Policy | undefined
  llmRequest: Policy | undefined
  llmAuthorization: Policy | undefined
  tokenLimits: Policy | undefined
}

/** Variables that exist on LLM routes; `llmRequest` and `llm` only once the body is read. */
const llmRoots: ReadonlySet<string> = new Set(['request', 'source', 'jwt', 'apiKey', 'llmRequest', 'llm'])

/** `llm.policies`. */
export const llmPoliciesSchema = object(
  {
    cors: optional(corsSchema),
    apiKey: optional(apiKeySchema),
    authorization: optional(authorizationSchema),
    localRateLimit: optional(localRateLimitSchema),
    rateLimit: optional(
      object(
        { local: optional(localRateLimitSchema) },
        { doc: 'Another spelling: `rateLimit.local` is `localRateLimit`.', advanced: true },
      ),
    ),
  },
  { doc: 'Who may use the models, and how much.' },
)

export type LlmPoliciesConfig = Infer<typeof llmPoliciesSchema>

type Report = (path: (string | number)[], message: string) => void

/** Reports what the schema cannot say about the policies. */
export function checkLlmPolicies(config: LlmPoliciesConfig, report: Report) {
  const under =
    (...prefix: string[]): Report =>
    (path, message) =>
      report([...prefix, ...path], message)
  if (config.cors) checkCors(config.cors, under('cors'))
  if (config.apiKey) checkApiKey(config.apiKey, under('apiKey'))
  if (config.authorization) checkAuthorization(config.authorization, llmRoots, under('authorization'))
  if (config.localRateLimit) checkLocalRateLimit(config.localRateLimit, under('localRateLimit'))
  if (!config.rateLimit?.local) return
  checkLocalRateLimit(config.rateLimit.local, under('rateLimit', 'local'))
  if (config.localRateLimit) report(['rateLimit', 'local'], 'is the same as localRateLimit: keep one of them')
}

/**
 * The policies of an LLM route, in order, around the step that reads the LLM request.
 * `place` names where they are configured: counts of limits belong to it across reloads.
 */
export function compileLlmPolicies(
  config: LlmPoliciesConfig,
  context: CompileContext,
  llmRequest: Policy,
  place: string,
): Policy[] {
  const authorization =
    config.authorization && compileAuthorization(config.authorization, context, { roots: llmRoots, place })
  const limits = compileLocalRateLimit(localLimits(config), context, { place })
  const steps: LlmSteps = {
    cors: config.cors && compileCors(config.cors),
    apiKey: config.apiKey && compileApiKey(config.apiKey, context),
    authorization: authorization?.beforeBody,
    requestLimits: limits.beforeBody,
    llmRequest,
    llmAuthorization: authorization?.afterBody,
    tokenLimits: limits.afterBody,
  }
  return llmOrder.flatMap(({ step }) => steps[step] ?? [])
}

/** The order in which an MCP request meets its policies. Replies meet them in reverse. */
export const mcpOrder: readonly Step<McpSteps>[] = [
  { step: 'documents', because: 'discovery and registration are for everyone, from every origin' },
  { step: 'origin', because: 'a page that may not speak to the gateway learns nothing from it' },
  { step: 'cors', because: 'a browser can read a 401 only if the reply carries CORS headers' },
  {
    step: 'authentication',
    because: 'nothing is done for strangers: no rule, no count, no byte of the body',
  },
  { step: 'apiKey', because: 'as the token: rules and limits may be about the key' },
  { step: 'authorization', because: 'what is refused must not count against a budget' },
  { step: 'requestLimits', because: 'the last check before the body is read' },
]

type McpSteps = {
  documents: Policy | undefined
  origin: Policy | undefined
  cors: Policy | undefined
  authentication: Policy | undefined
  apiKey: Policy | undefined
  authorization: Policy | undefined
  requestLimits: Policy | undefined
}

/** Variables of rules on every MCP request; those on single tools also have `mcp`. */
const mcpRoots: ReadonlySet<string> = new Set(['request', 'source', 'jwt', 'apiKey'])

/** `mcp.policies`. */
export const mcpPoliciesSchema = object(
  {
    cors: optional(corsSchema),
    mcpAuthentication: optional(mcpAuthenticationSchema),
    apiKey: optional(apiKeySchema),
    authorization: optional(authorizationSchema),
    mcpAuthorization: optional(mcpAuthorizationSchema),
    localRateLimit: optional(localRateLimitSchema),
  },
  { doc: 'Who may use the MCP servers, and what of them.' },
)

export type McpPoliciesConfig = Infer<typeof mcpPoliciesSchema>

/** Reports what the schema cannot say about the policies. */
export function checkMcpPolicies(config: McpPoliciesConfig, report: Report) {
  const under =
    (...prefix: string[]): Report =>
    (path, message) =>
      report([...prefix, ...path], message)
  if (config.cors) checkCors(config.cors, under('cors'))
  if (config.mcpAuthentication) checkMcpAuthentication(config.mcpAuthentication, under('mcpAuthentication'))
  if (config.apiKey) checkApiKey(config.apiKey, under('apiKey'))
  if (config.authorization) checkAuthorization(config.authorization, mcpRoots, under('authorization'))
  if (config.mcpAuthorization) checkMcpAuthorization(config.mcpAuthorization, under('mcpAuthorization'))
  if (!config.localRateLimit) return
  checkLocalRateLimit(config.localRateLimit, under('localRateLimit'))
  config.localRateLimit.forEach((limit, index) => {
    const counted = 'tokens' in limit ? limit.tokens : undefined
    const isTokens = counted !== undefined || ('type' in limit && limit.type === 'tokens')
    if (isTokens) report(['localRateLimit', index], 'MCP requests have no tokens: limit requests instead')
  })
}

export type McpPolicies = {
  policies: Policy[]
  /** Rules about single tools, prompts and resources, for the backend to ask. */
  rules: McpAuthorization | undefined
}

/** The policies of an MCP route, in order. `isLoopback`: its address is open to this machine only. */
export function compileMcpPolicies(
  config: McpPoliciesConfig,
  context: CompileContext,
  { place, isLoopback }: { place: string; isLoopback: boolean },
): McpPolicies {
  const authentication =
    config.mcpAuthentication && compileMcpAuthentication(config.mcpAuthentication, context)
  const resource = config.mcpAuthentication?.resourceMetadata?.resource
  const steps: McpSteps = {
    documents: authentication?.documents,
    origin: compileOrigin({
      isAllowed: compileOrigins(config.cors?.allowOrigins ?? []),
      isLoopback,
      hosts: resource === undefined ? [] : [new URL(resource).host],
    }),
    cors: config.cors && compileCors(withMcpHeaders(config.cors)),
    authentication: authentication?.authentication,
    apiKey: config.apiKey && compileApiKey(config.apiKey, context),
    authorization:
      config.authorization &&
      compileAuthorization(config.authorization, context, { roots: mcpRoots, place }).beforeBody,
    requestLimits: compileLocalRateLimit(config.localRateLimit ?? [], context, { place }).beforeBody,
  }
  return {
    policies: mcpOrder.flatMap(({ step }) => steps[step] ?? []),
    rules: config.mcpAuthorization && compileMcpAuthorization(config.mcpAuthorization, context),
  }
}

/** What clients in a browser must read to go on with a session and to find out how to authenticate. */
const readByClients = ['mcp-session-id', 'www-authenticate']
/** What they must send to go on with a session, and with a stream that broke off. */
const sentByClients = ['mcp-session-id', 'mcp-protocol-version', 'last-event-id']
/** A page ends its session with DELETE, which browsers ask for first. */
const methodsOfClients = ['GET', 'POST', 'DELETE']

function withMcpHeaders(cors: CorsConfig): CorsConfig {
  return {
    ...cors,
    allowMethods: cors.allowMethods ?? methodsOfClients,
    allowHeaders: withNames(cors.allowHeaders, sentByClients),
    exposeHeaders: withNames(cors.exposeHeaders, readByClients),
  }
}

function withNames(configured: readonly string[] = [], needed: readonly string[]): string[] {
  const lacking = needed.filter(
    (name) => !configured.some((entry) => entry === '*' || entry.toLowerCase() === name),
  )
  return [...configured, ...lacking]
}

function localLimits(config: LlmPoliciesConfig): LocalRateLimitConfig {
  return config.localRateLimit ?? config.rateLimit?.local ?? []
}
