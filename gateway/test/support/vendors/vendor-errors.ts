import { encodeException } from '../aws/event-stream.ts'
import { type Answer, jsonAnswer } from '../mock-server.ts'
import { dataEvent, type Json, namedEvent } from './wire.ts'

/** Failures that every vendor has, by the text `fail:<case>` in a request. */
export const errorCases = [
  ...['unknown_model', 'wrong_region', 'expired_credential', 'throttled', 'filtered_prompt'],
  ...['filtered_output', 'too_long', 'overloaded', 'broken_stream'],
] as const

export type ErrorCase = (typeof errorCases)[number]

/** Cases whose responses are successful HTTP responses: a finish reason, or the end of a stream. */
type RefusalCase = Exclude<ErrorCase, 'filtered_output' | 'broken_stream'>

type Errors = Partial<Record<RefusalCase, Answer>>

export function errorCaseIn(text: string): ErrorCase | undefined {
  const name = /fail:(\w+)/.exec(text)?.[1]
  return errorCases.find((one) => one === name)
}

/** Seconds that vendors announce, each in its own way. */
const waitSeconds = 7

function openAi(status: number, code: string | null, type: string, message: string, headers = {}): Answer {
  return jsonAnswer(status, { error: { message, type, param: null, code } }, headers)
}

const tooLong = openAi(
  400,
  'context_length_exceeded',
  'invalid_request_error',
  "This model's maximum context length is 128000 tokens. However, your messages resulted in 150000 tokens.",
)

/** https://platform.openai.com/docs/guides/error-codes; wait times in headers of buckets. */
const openAiErrors: Errors = {
  unknown_model: openAi(
    404,
    'model_not_found',
    'invalid_request_error',
    'The model `gpt-9` does not exist or you do not have access to it.',
  ),
  wrong_region: openAi(
    403,
    'unsupported_country_region_territory',
    'request_forbidden',
    'Country, region, or territory not supported',
  ),
  expired_credential: openAi(
    401,
    'invalid_api_key',
    'invalid_request_error',
    'Incorrect API key provided: sk-proj-****abcd. You can find your API key at the dashboard.',
  ),
  throttled: openAi(429, 'rate_limit_exceeded', 'tokens', 'Rate limit reached for gpt-5 on tokens per min.', {
    'x-ratelimit-remaining-requests': '59',
    'x-ratelimit-reset-requests': '1s',
    'x-ratelimit-remaining-tokens': '0',
    'x-ratelimit-reset-tokens': '6.4s',
  }),
  filtered_prompt: openAi(
    400,
    'invalid_prompt',
    'invalid_request_error',
    'Invalid prompt: your prompt was flagged as potentially violating our usage policy.',
  ),
  too_long: tooLong,
  overloaded: openAi(
    503,
    null,
    'server_error',
    'The engine is currently overloaded, please try again later.',
  ),
}

function anthropic(status: number, type: string, message: string, headers = {}): Answer {
  return jsonAnswer(status, { type: 'error', error: { type, message }, request_id: 'req_1' }, headers)
}

/** https://docs.anthropic.com/en/api/errors */
const anthropicErrors: Errors = {
  unknown_model: anthropic(404, 'not_found_error', 'model: claude-9'),
  wrong_region: anthropic(403, 'forbidden', 'Request not allowed'),
  expired_credential: anthropic(401, 'authentication_error', 'invalid x-api-key'),
  throttled: anthropic(429, 'rate_limit_error', 'This request would exceed the rate limit.', {
    'retry-after': `${waitSeconds}`,
    'anthropic-ratelimit-requests-remaining': '0',
    'anthropic-ratelimit-requests-reset': new Date(Date.now() + 7000).toISOString(),
  }),
  filtered_prompt: anthropic(400, 'invalid_request_error', 'Output blocked by content filtering policy'),
  too_long: anthropic(400, 'invalid_request_error', 'prompt is too long: 210000 tokens > 200000 maximum'),
  overloaded: anthropic(529, 'overloaded_error', 'Overloaded'),
}

function azure(status: number, code: string, message: string, headers = {}): Answer {
  return jsonAnswer(status, { error: { code, message } }, headers)
}

/** https://learn.microsoft.com/azure/ai-foundry/openai/reference; the front door has a shape of its own. */
const azureErrors: Errors = {
  unknown_model: azure(404, 'DeploymentNotFound', 'The API deployment for this resource does not exist.'),
  wrong_region: azure(
    401,
    '401',
    'Access denied due to invalid subscription key or wrong API endpoint. Make sure to use a correct regional API endpoint for your resource.',
  ),
  expired_credential: jsonAnswer(401, {
    statusCode: 401,
    message: 'Unauthorized. Access token is missing, invalid, audience is incorrect, or have expired.',
  }),
  throttled: azure(429, '429', 'Requests have exceeded the token rate limit of your pricing tier.', {
    'retry-after-ms': '6400',
  }),
  filtered_prompt: jsonAnswer(400, {
    error: {
      message:
        "The response was filtered due to the prompt triggering Azure OpenAI's content management policy.",
      type: null,
      param: 'prompt',
      code: 'content_filter',
      status: 400,
      innererror: {
        code: 'ResponsibleAIPolicyViolation',
        content_filter_result: { hate: { filtered: true } },
      },
    },
  }),
  too_long: tooLong,
  overloaded: azure(503, 'ServiceUnavailable', 'The service is temporarily unable to process your request.'),
}

function google(code: number, status: string, message: string, details: Json[] = []): Answer {
  return jsonAnswer(code, { error: { code, message, status, ...(details.length > 0 && { details }) } })
}

const rpc = 'type.googleapis.com/google.rpc.'

/** https://ai.google.dev/gemini-api/docs/troubleshooting; the wait time is a detail of the error. */
const geminiErrors: Errors = {
  unknown_model: google(404, 'NOT_FOUND', 'models/gemini-9 is not found for API version v1beta.'),
  wrong_region: google(400, 'FAILED_PRECONDITION', 'User location is not supported for the API use.'),
  expired_credential: google(400, 'INVALID_ARGUMENT', 'API key expired. Please renew the API key.', [
    { '@type': `${rpc}ErrorInfo`, reason: 'API_KEY_INVALID', domain: 'googleapis.com' },
  ]),
  throttled: google(429, 'RESOURCE_EXHAUSTED', 'You exceeded your current quota.', [
    { '@type': `${rpc}QuotaFailure`, violations: [] },
    { '@type': `${rpc}RetryInfo`, retryDelay: '6.4s' },
  ]),
  too_long: google(
    400,
    'INVALID_ARGUMENT',
    'The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).',
  ),
  overloaded: google(503, 'UNAVAILABLE', 'The model is overloaded. Please try again later.'),
}

/** Vertex AI, for the models of all publishers. */
const vertexErrors: Errors = {
  ...geminiErrors,
  unknown_model: google(404, 'NOT_FOUND', 'Publisher Model `gemini-9` was not found.'),
  wrong_region: google(400, 'FAILED_PRECONDITION', 'The model is not servable in region europe-west1.'),
  expired_credential: google(401, 'UNAUTHENTICATED', 'Request had invalid authentication credentials.', [
    { '@type': `${rpc}ErrorInfo`, reason: 'ACCESS_TOKEN_EXPIRED', domain: 'googleapis.com' },
  ]),
}

/** The model itself answers as at Anthropic, the service as Google. */
const vertexClaudeErrors: Errors = {
  ...vertexErrors,
  filtered_prompt: anthropicErrors.filtered_prompt as Answer,
  too_long: anthropicErrors.too_long as Answer,
  overloaded: anthropicErrors.overloaded as Answer,
}

function aws(status: number, type: string, message: string): Answer {
  return jsonAnswer(status, { message }, { 'x-amzn-errortype': type })
}

/** https://docs.aws.amazon.com/bedrock/latest/userguide/troubleshooting-api-error-codes.html */
const bedrockErrors: Errors = {
  unknown_model: aws(404, 'ResourceNotFoundException', 'Could not resolve the foundation model.'),
  wrong_region: aws(403, 'InvalidSignatureException', 'Credential should be scoped to a valid region.'),
  expired_credential: aws(
    403,
    'ExpiredTokenException',
    'The security token included in the request is expired',
  ),
  throttled: aws(429, 'ThrottlingException', 'Too many tokens, please wait before trying again.'),
  too_long: aws(400, 'ValidationException', 'Input is too long for requested model.'),
  overloaded: aws(503, 'ServiceUnavailableException', 'Bedrock is unable to process your request.'),
}

function flat(status: number, message: string, more: Json = {}, headers = {}): Answer {
  return jsonAnswer(status, { message, ...more }, headers)
}

/** https://docs.cohere.com/reference/errors */
const cohereErrors: Errors = {
  unknown_model: flat(404, "model 'command-9' not found, make sure the correct model ID was used.", {
    id: 'e-1',
  }),
  expired_credential: flat(401, 'invalid api token', { id: 'e-1' }),
  throttled: flat(429, 'You are using a Trial key, which is limited to 20 API calls / minute.', {
    id: 'e-1',
  }),
  too_long: flat(400, 'too many tokens: the total number of tokens in the prompt cannot exceed 128000.'),
  overloaded: flat(503, 'the service is overloaded', { id: 'e-1' }),
}

/** https://docs.mistral.ai */
const mistralErrors: Errors = {
  unknown_model: flat(400, 'Invalid model: mistral-9', {
    ...{ object: 'error', type: 'invalid_model', param: null, code: '1500' },
  }),
  expired_credential: jsonAnswer(401, { detail: 'Unauthorized' }),
  throttled: flat(429, 'Requests rate limit exceeded', {
    ...{ object: 'error', type: 'rate_limited', param: null, code: '1300' },
  }),
  too_long: flat(
    400,
    'Prompt contains 150000 tokens, too large for model with 128000 maximum context length',
    {
      ...{ object: 'error', type: 'invalid_request_prompt', param: null, code: '3051' },
    },
  ),
  overloaded: flat(503, 'Service unavailable.', {
    object: 'error',
    type: 'service_unavailable',
    code: '3800',
  }),
}

/** Servers whose errors are OpenAI's without the object around them. */
const flatErrors: Errors = {
  unknown_model: flat(404, 'Model llama-9 does not exist or you do not have access to it.', {
    ...{ type: 'not_found_error', param: 'model', code: 'model_not_found' },
  }),
  expired_credential: flat(401, 'Wrong API Key', {
    ...{ type: 'invalid_request_error', param: 'api_key', code: 'wrong_api_key' },
  }),
  throttled: flat(
    429,
    'Tokens per minute limit exceeded - too many tokens processed.',
    { type: 'too_many_tokens_error', param: 'quota', code: 'token_quota_exceeded' },
    { 'x-ratelimit-remaining-tokens-minute': '0', 'x-ratelimit-reset-tokens-minute': '6.4' },
  ),
  too_long: flat(400, 'Current length is 150000 while limit is 128000', {
    ...{ type: 'invalid_request_error', param: 'messages', code: 'context_length_exceeded' },
  }),
  overloaded: flat(503, 'We are experiencing high traffic', { type: 'server_error', code: 'queue_exceeded' }),
}

/** https://api-docs.deepseek.com/quick_start/error_codes */
const deepSeekErrors: Errors = {
  unknown_model: openAi(400, 'invalid_request_error', 'invalid_request_error', 'Model Not Exist'),
  expired_credential: openAi(
    401,
    'invalid_request_error',
    'authentication_error',
    'Authentication Fails (auth header format should be Bearer sk-...)',
  ),
  throttled: openAi(429, 'rate_limit_reached_error', 'rate_limit_error', 'Rate limit reached'),
  too_long: openAi(
    400,
    'invalid_request_error',
    'invalid_request_error',
    "This model's maximum context length is 65536 tokens. However, you requested 70000 tokens.",
  ),
  overloaded: openAi(503, null, 'server_error', 'The server is overloaded due to high traffic.'),
}

/** vLLM, and a proxy without JSON in front of it. */
const customErrors: Errors = {
  unknown_model: flat(404, 'The model `local-9` does not exist.', {
    ...{ object: 'error', type: 'NotFoundError', param: null, code: 404 },
  }),
  expired_credential: jsonAnswer(401, { error: 'Unauthorized' }),
  throttled: page(429, 'Too Many Requests', { 'retry-after': `${waitSeconds}` }),
  too_long: flat(400, "This model's maximum context length is 4096 tokens.", {
    ...{ object: 'error', type: 'BadRequestError', param: null, code: 400 },
  }),
  overloaded: page(503, '503 Service Temporarily Unavailable', {}),
}

function page(status: number, title: string, headers: Record<string, string>): Answer {
  return (_, response) => {
    response.writeHead(status, { 'content-type': 'text/html', ...headers })
    response.end(`<html><h1>${title}</h1></html>`)
  }
}

/** Errors by label of the row. */
const errorsOf: Readonly<Record<string, Errors>> = {
  openai: openAiErrors,
  'openai, Pro': openAiErrors,
  anthropic: anthropicErrors,
  azure: azureErrors,
  'azure, Claude': { ...anthropicErrors, expired_credential: azureErrors.expired_credential as Answer },
  gemini: geminiErrors,
  'vertex, Gemini': vertexErrors,
  'vertex, Claude': vertexClaudeErrors,
  bedrock: bedrockErrors,
  'bedrock, Claude': bedrockErrors,
  cohere: cohereErrors,
  mistral: mistralErrors,
  deepseek: deepSeekErrors,
  cerebras: flatErrors,
  custom: customErrors,
}

/** The error of a vendor; undefined if it does not have it. */
export function errorOf(label: string, name: ErrorCase): Answer | undefined {
  const errors: Readonly<Partial<Record<string, Answer>>> = errorsOf[label] ?? {}
  return errors[name]
}

/** The last event of a stream that breaks, in the API of the vendor. */
export const streamErrors: Readonly<Record<string, string | Buffer>> = {
  chat: dataEvent({
    error: {
      message: 'The server had an error while processing your request.',
      type: 'server_error',
      code: null,
    },
  }),
  responses: namedEvent({
    ...{ type: 'error', code: 'server_error', param: null, sequence_number: 9 },
    message: 'The server had an error while processing your request.',
  }),
  messages: namedEvent({ type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } }),
  generate_content: dataEvent({
    error: { code: 503, message: 'The model is overloaded. Please try again later.', status: 'UNAVAILABLE' },
  }),
  cohere_chat: namedEvent({
    type: 'message-end',
    delta: { error: 'The generation failed due to an internal error.', finish_reason: 'ERROR' },
  }),
  converse: encodeException('throttlingException', 'Too many tokens, please wait before trying again.'),
}
