import { routingRoots } from '../../backends/llm/config/config.ts'
import { locationRoots } from '../../identity/credential-location.ts'
import { headerVariables } from '../../policies/guardrails/kinds/webhook/headers.ts'
import { ruleVariables } from '../../policies/mcp-authorization.ts'
import { costVariables } from '../../policies/rate-limit/global/config.ts'
import { celVariablesOf } from '../../policies/registry/cel-variables.ts'

/** Place of expressions, with the variables that have a value there. */
export type CelScope = {
  readonly name: string
  readonly doc: string
  readonly variables: ReadonlySet<string>
}

/** All scopes of expressions. */
export const celScopes: readonly CelScope[] = [
  {
    name: 'http',
    doc: 'Rules and limits of gateways and HTTP routes.',
    variables: celVariablesOf('http'),
  },
  {
    name: 'llm',
    doc: 'Rules, limits and budgets of LLM requests, after the body is read.',
    variables: celVariablesOf('llm'),
  },
  {
    name: 'llmRouting',
    doc: 'Conditions of virtual models.',
    variables: new Set(routingRoots),
  },
  {
    name: 'llmCost',
    doc: 'Token costs of global limits, after the response.',
    variables: costVariables,
  },
  {
    name: 'guardHeaders',
    doc: 'Headers of guard webhooks. `llmRequest` has a value in request guards only.',
    variables: headerVariables,
  },
  {
    name: 'mcp',
    doc: 'Rules and limits of requests to MCP servers.',
    variables: celVariablesOf('mcp'),
  },
  {
    name: 'mcpItem',
    doc: 'Rules on single tools, prompts and resources.',
    variables: ruleVariables,
  },
  {
    name: 'ui',
    doc: 'Rules of the console and its API on gateways.',
    variables: celVariablesOf('ui'),
  },
  {
    name: 'credential',
    doc: 'Location of a credential in a request.',
    variables: locationRoots,
  },
]

/** Documentation of variables and of their members. */
export const variableDocs: Readonly<Record<string, string>> = {
  now: 'Time of the evaluation, a timestamp.',
  request: 'The client’s request.',
  'request.method': 'Method, as in `POST`.',
  'request.scheme': '`http` or `https`, as the client sent it.',
  'request.host': 'Host, with the port if it is not the default.',
  'request.path': 'Path, normalised, without query.',
  'request.query': 'Query with its question mark; empty without one.',
  'request.pathAndQuery': 'Path and query.',
  'request.uri': 'The whole address.',
  'request.version': 'Protocol version, as in `1.1`.',
  'request.headers': 'Headers by name in lower case.',
  'request.startTime': 'Arrival of the request, a timestamp.',
  'request.body': 'Body, as bytes.',
  source: 'Address of the client.',
  'source.address': 'IP address.',
  'source.network': 'Network of the address: /32 of IPv4, /64 of IPv6.',
  'source.port': 'Port; 0 behind a proxy.',
  jwt: 'Claims of the validated token.',
  basicAuth: 'User of Basic authentication.',
  'basicAuth.username': 'Name of the user.',
  ui: 'Call of the admin API.',
  'ui.change': 'Whether the call changes something, or reads secrets in clear.',
  apiKey: 'Metadata of the virtual key, with its `id`.',
  llmRequest: 'JSON body of the LLM request.',
  llm: 'Properties of the LLM call.',
  'llm.operation': 'Operation, as in `chat`.',
  'llm.api': 'API of the client, as in `chat_completions`.',
  'llm.requestModel': 'Model in the request.',
  'llm.streaming': 'Whether the response is a stream.',
  'llm.configuredModel': 'Name of the model in the configuration.',
  'llm.provider': 'Provider, as in `openai`.',
  'llm.responseModel': 'Model in the response.',
  'llm.cost': 'Cost in US dollars.',
  mcp: 'The MCP call.',
  'mcp.method': 'Method, as in `tools/call`.',
  'mcp.tool': 'Tool of the call.',
  'mcp.tool.name': 'Name of the tool at its server.',
  'mcp.tool.target': 'Name of the server.',
  'mcp.tool.arguments': 'Arguments of the call.',
  'mcp.prompt': 'Prompt of the call, with `name` and `target`.',
  'mcp.resource': 'Resource of the call, with `name` and `target`.',
}
