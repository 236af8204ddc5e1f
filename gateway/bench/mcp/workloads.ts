import type { Workload } from '../llm/workloads.ts'
import { type RequestParts, requestText } from '../measure/request.ts'
import type { Subject } from '../subjects/processes.ts'
import { audience, type Issuer, issuer } from './tokens.ts'

export const protocolVersion = '2025-11-25'

/** The tool whose calls are answered with JSON, and the one with an event stream. */
export const plainTool = 'search'
export const streamingTool = 'search-stream'

export const initializeId = 1
export const callId = 7

/** The last bytes of the answer of a call that went well. */
export const answerEnding = '"isError":false}}'

const path = '/mcp'
const connections = 16
const target = 1.5

/** Calls of a tool, each connection with a session and a token of its own. */
export function mcpWorkloads(tokens: Issuer): Workload[] {
  const calls = (name: Workload['name'], tool: string, title: string): Workload => {
    const body = callBody(tool)
    return {
      name,
      title,
      body,
      ending: answerEnding,
      connections,
      target,
      requestsTo: (subject) =>
        Promise.all(
          Array.from({ length: connections }, async (_, index) => {
            const token = tokens.token(`user-${index}`)
            const session = sessionHeaders(await openSession(subject, token))
            return requestText(subject, messageRequest(token, body.toString('latin1'), session))
          }),
        ),
    }
  }
  return [
    calls('mcp-json', plainTool, 'tools/call, answered with JSON'),
    calls('mcp-sse', streamingTool, 'tools/call, answered with an event stream'),
  ]
}

/** The `mcp` section of the configuration the speed targets speak of. */
export function mcpConfig(upstreamPort: number, { keySet }: Issuer): object {
  return {
    targets: [{ name: 'bench', mcp: { host: `http://127.0.0.1:${upstreamPort}${path}` } }],
    policies: {
      mcpAuthentication: { issuer, audiences: [audience], jwks: { inline: keySet } },
      authorization: { rules: ['"reader" in jwt.roles && request.path.startsWith("/mcp")'] },
      mcpAuthorization: {
        rules: [`mcp.tool.name in ["${plainTool}", "${streamingTool}"] && "caller" in jwt.roles`],
      },
    },
  }
}

/** Opens a session and returns its id, if the server has sessions. Leaves no connection open. */
export async function openSession(subject: Subject, token: string): Promise<string | undefined> {
  const post = (message: object, session: Record<string, string>) => {
    const request = messageRequest(token, JSON.stringify({ jsonrpc: '2.0', ...message }), session)
    const { path, headers, body } = subject.adapt?.(request) ?? request
    return fetch(`http://127.0.0.1:${subject.port}${path}`, {
      method: 'POST',
      headers: { ...headers, connection: 'close' },
      body,
    })
  }
  const clientInfo = { name: 'bench', version: '1.0.0' }
  const params = { protocolVersion, capabilities: {}, clientInfo }
  const answer = await post({ id: initializeId, method: 'initialize', params }, {})
  const text = await answer.text()
  if (answer.status !== 200) throw new Error(`${subject.name}: no session: status ${answer.status}: ${text}`)
  const session = answer.headers.get('mcp-session-id') ?? undefined
  const noted = await post({ method: 'notifications/initialized' }, sessionHeaders(session))
  await noted.arrayBuffer()
  if (noted.status !== 202) {
    throw new Error(`${subject.name}: the session does not begin: status ${noted.status}`)
  }
  return session
}

function sessionHeaders(session: string | undefined): Record<string, string> {
  return {
    ...(session !== undefined && { 'mcp-session-id': session }),
    'mcp-protocol-version': protocolVersion,
  }
}

/** A call of about 500 bytes. */
function callBody(tool: string): Buffer {
  const query = 'what a "gateway" does between a client and a server '.repeat(6)
  const params = {
    name: tool,
    arguments: { query, limit: 10, filters: { language: 'en', since: '2025-01-01' } },
    _meta: { progressToken: callId },
  }
  return Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: callId, method: 'tools/call', params }))
}

function messageRequest(token: string, body: string, headers: Record<string, string>): RequestParts {
  return {
    method: 'POST',
    path,
    headers: {
      accept: 'application/json, text/event-stream',
      'content-type': 'application/json',
      'user-agent': 'bench',
      authorization: `Bearer ${token}`,
      ...headers,
    },
    body,
  }
}
