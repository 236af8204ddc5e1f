import type { Workload } from '../llm/workloads.ts'
import type { Subject } from '../subjects/processes.ts'
import { audience, type Issuer, issuer } from './tokens.ts'

export const protocolVersion = '2025-11-25'

/** The tool whose calls are answered with JSON, and the one with an event stream. */
const plainTool = 'search'
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
            return callRequest(subject.port, await openSession(subject, token), token, body)
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

/** Begins a session as clients do, and answers its id. Leaves no connection open. */
export async function openSession({ port }: Subject, token: string): Promise<string> {
  const post = (message: object, session: Record<string, string>) =>
    fetch(`http://127.0.0.1:${port}${path}`, {
      method: 'POST',
      headers: {
        accept: 'application/json, text/event-stream',
        'content-type': 'application/json',
        authorization: `Bearer ${token}`,
        connection: 'close',
        ...session,
      },
      body: JSON.stringify({ jsonrpc: '2.0', ...message }),
    })
  const clientInfo = { name: 'bench', version: '1.0.0' }
  const params = { protocolVersion, capabilities: {}, clientInfo }
  const answer = await post({ id: initializeId, method: 'initialize', params }, {})
  const text = await answer.text()
  const session = answer.headers.get('mcp-session-id')
  if (session === null) throw new Error(`no session: status ${answer.status}: ${text}`)
  const noted = await post(
    { method: 'notifications/initialized' },
    { 'mcp-session-id': session, 'mcp-protocol-version': protocolVersion },
  )
  await noted.arrayBuffer()
  if (noted.status !== 202) throw new Error(`the session does not begin: status ${noted.status}`)
  return session
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

function callRequest(port: number, session: string, token: string, body: Buffer): string {
  const head = [
    `POST ${path} HTTP/1.1`,
    `host: 127.0.0.1:${port}`,
    'accept: application/json, text/event-stream',
    'content-type: application/json',
    'user-agent: bench',
    `authorization: Bearer ${token}`,
    `mcp-session-id: ${session}`,
    `mcp-protocol-version: ${protocolVersion}`,
    `content-length: ${body.byteLength}`,
  ]
  return `${head.join('\r\n')}\r\n\r\n${body.toString('latin1')}`
}
