import type { CompileContext } from '../pipeline/compile-context.ts'
import type { Policy } from '../pipeline/policy.ts'
import { type Infer, object, optional } from '../schema/dsl.ts'
import { apiKeySchema, checkApiKey, compileApiKey } from './api-key/api-key.ts'
import { authorizationSchema, checkAuthorization, compileAuthorization } from './authorization.ts'
import { checkCors, compileCors, corsSchema } from './cors.ts'
import { compileLocalRateLimit } from './rate-limit/local.ts'
import {
  checkLocalRateLimit,
  type LocalRateLimitConfig,
  localRateLimitSchema,
} from './rate-limit/local-config.ts'

/** A step of an LLM route, and why it is where it is. */
type Step = { step: keyof LlmSteps; because: string }

/** The order in which an LLM request meets its policies. Replies meet them in reverse. */
export const llmOrder: readonly Step[] = [
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

function localLimits(config: LlmPoliciesConfig): LocalRateLimitConfig {
  return config.localRateLimit ?? config.rateLimit?.local ?? []
}
