import {
  Client as Client2,
  type OAuthClientProvider as OAuthClientProvider2,
  StreamableHTTPClientTransport as Transport2,
} from '@modelcontextprotocol/client'
import type { OAuthClientProvider as OAuthClientProvider1 } from '@modelcontextprotocol/sdk/client/auth.js'
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as Transport1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ListRootsRequestSchema,
  LoggingMessageNotificationSchema,
  ToolListChangedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js'
import { endAfter } from './cleanup.ts'

/** Operations that the tests require of a client of either generation. */
export type McpClient = {
  tools(): Promise<string[]>
  prompts(): Promise<string[]>
  resources(): Promise<string[]>
  /** The texts of the result, joined by line ends; fails when the result is an error. */
  call(name: string, args?: Record<string, unknown>, options?: CallOptions): Promise<string>
  read(uri: string): Promise<string>
  prompt(name: string, args?: Record<string, string>): Promise<string>
  ping(): Promise<void>
  serverName(): string | undefined
  sessionId(): string | undefined
  /** Log messages and list changes of the server, in order. */
  heard: string[]
  /** Ends the session at the server too. */
  end(): Promise<void>
  close(): Promise<void>
}

export type CallOptions = {
  onProgress?: (progress: number) => void
  signal?: AbortSignal
  timeoutMs?: number
}

export type ConnectOptions = {
  headers?: Record<string, string>
  authProvider?: OAuthClientProvider1 & OAuthClientProvider2
}

export type Generation = 'SDK 1' | 'SDK 2'

export const generations: readonly Generation[] = ['SDK 1', 'SDK 2']

/** A connected official client that answers sampling, elicitation and roots; it closes with the test. */
export async function connectClient(
  generation: Generation,
  url: string,
  options: ConnectOptions = {},
): Promise<McpClient> {
  const client = generation === 'SDK 1' ? await connect1(url, options) : await connect2(url, options)
  endAfter('test', () => client.close())
  return client
}

/** Redeems the code that the provider sent to the client's own address. */
export async function finishAuthorization(
  generation: Generation,
  url: string,
  { authProvider }: ConnectOptions,
  callback: URL,
): Promise<void> {
  const options = authProvider === undefined ? {} : { authProvider }
  if (generation === 'SDK 1') {
    await new Transport1(new URL(url), options).finishAuth(callback.searchParams.get('code') ?? '')
  } else {
    await new Transport2(new URL(url), options).finishAuth(callback.searchParams)
  }
}

const info = { name: 'tollgate-test', version: '1.0.0' }
const capabilities = { sampling: {}, elicitation: {}, roots: { listChanged: true } }

/** Responses of both generations to a server's own requests. */
const sampled = {
  role: 'assistant' as const,
  content: { type: 'text' as const, text: 'sampled' },
  model: 'none',
}
const elicited = { action: 'accept' as const, content: { username: 'alice', email: 'alice@example.com' } }
const roots = { roots: [{ uri: 'file:///work', name: 'work' }] }

async function connect1(url: string, { headers = {}, authProvider }: ConnectOptions): Promise<McpClient> {
  const heard: string[] = []
  const client = new Client1(info, { capabilities })
  client.setRequestHandler(CreateMessageRequestSchema, () => sampled)
  client.setRequestHandler(ElicitRequestSchema, () => elicited)
  client.setRequestHandler(ListRootsRequestSchema, () => roots)
  client.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) => {
    heard.push(String(params.data))
  })
  client.setNotificationHandler(ToolListChangedNotificationSchema, ({ method }) => {
    heard.push(method)
  })
  const transport = new Transport1(new URL(url), {
    requestInit: { headers },
    ...(authProvider === undefined ? {} : { authProvider }),
  })
  await client.connect(transport)
  return {
    tools: async () => (await client.listTools()).tools.map(({ name }) => name),
    prompts: async () => (await client.listPrompts()).prompts.map(({ name }) => name),
    resources: async () => (await client.listResources()).resources.map(({ uri }) => uri),
    async call(name, args = {}, { onProgress, signal, timeoutMs } = {}) {
      const result = await client.callTool({ name, arguments: args }, undefined, {
        ...(onProgress && { onprogress: ({ progress }) => onProgress(progress) }),
        ...(signal && { signal }),
        ...(timeoutMs && { timeout: timeoutMs }),
      })
      return textOf(result)
    },
    read: async (uri) => contentsOf(await client.readResource({ uri })),
    prompt: async (name, args = {}) =>
      JSON.stringify((await client.getPrompt({ name, arguments: args })).messages),
    ping: async () => void (await client.ping()),
    serverName: () => client.getServerVersion()?.name,
    sessionId: () => transport.sessionId,
    heard,
    end: () => transport.terminateSession(),
    close: () => client.close(),
  }
}

async function connect2(url: string, { headers = {}, authProvider }: ConnectOptions): Promise<McpClient> {
  const heard: string[] = []
  const client = new Client2(info, { capabilities })
  client.setRequestHandler('sampling/createMessage', () => sampled)
  client.setRequestHandler('elicitation/create', () => elicited)
  client.setRequestHandler('roots/list', () => roots)
  client.setNotificationHandler('notifications/message', ({ params }) => {
    heard.push(String(params.data))
  })
  client.setNotificationHandler('notifications/tools/list_changed', ({ method }) => {
    heard.push(method)
  })
  const transport = new Transport2(new URL(url), {
    requestInit: { headers },
    ...(authProvider === undefined ? {} : { authProvider }),
  })
  await client.connect(transport)
  return {
    tools: async () => (await client.listTools()).tools.map(({ name }) => name),
    prompts: async () => (await client.listPrompts()).prompts.map(({ name }) => name),
    resources: async () => (await client.listResources()).resources.map(({ uri }) => uri),
    async call(name, args = {}, { onProgress, signal, timeoutMs } = {}) {
      const result = await client.callTool(
        { name, arguments: args },
        {
          ...(onProgress && { onprogress: ({ progress }) => onProgress(progress) }),
          ...(signal && { signal }),
          ...(timeoutMs && { timeout: timeoutMs }),
        },
      )
      return textOf(result)
    },
    read: async (uri) => contentsOf(await client.readResource({ uri })),
    prompt: async (name, args = {}) =>
      JSON.stringify((await client.getPrompt({ name, arguments: args })).messages),
    ping: async () => void (await client.ping()),
    serverName: () => client.getServerVersion()?.name,
    sessionId: () => transport.sessionId,
    heard,
    end: () => transport.terminateSession(),
    close: () => client.close(),
  }
}

function textOf(result: unknown): string {
  const text = textsIn(result, 'content')
  const failed = typeof result === 'object' && result !== null && Reflect.get(result, 'isError') === true
  if (failed) throw new Error(`the tool failed: ${text}`)
  return text
}

function contentsOf(result: unknown): string {
  return textsIn(result, 'contents')
}

function textsIn(result: unknown, key: string): string {
  const list: unknown = typeof result === 'object' && result !== null ? Reflect.get(result, key) : undefined
  if (!Array.isArray(list)) throw new Error(`no ${key}: ${JSON.stringify(result)}`)
  return list
    .map((item: unknown) => {
      const text: unknown = typeof item === 'object' && item !== null ? Reflect.get(item, 'text') : undefined
      return typeof text === 'string' ? text : JSON.stringify(item)
    })
    .join('\n')
}
