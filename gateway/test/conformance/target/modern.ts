import { randomBytes } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import {
  acceptedContent,
  type CallToolResult,
  CLIENT_CAPABILITIES_META_KEY,
  createMcpHandler,
  createRequestStateCodec,
  type InputRequiredResult,
  inputRequired,
  inputResponse,
  LOG_LEVEL_META_KEY,
  MissingRequiredClientCapabilityError,
  ProtocolError,
  Server,
  type ServerContext,
} from '@modelcontextprotocol/server'
import { image, schemaWithEverything, silence, text } from './content.ts'
import { prompts } from './prompts.ts'
import { read, resources, templates } from './resources.ts'

// The conformance target of revision 2026-07-28, without sessions, on the second generation of the official
// SDK.

type State = { step: number }
type Result = CallToolResult | InputRequiredResult
type Modern = (context: ServerContext, state: StateCodec) => Result | Promise<Result>
type StateCodec = ReturnType<typeof createRequestStateCodec<State>>

const noArguments = { type: 'object' as const, properties: {} }
const question = (message: string, property: string) =>
  inputRequired.elicit({
    message,
    requestedSchema: { type: 'object', properties: { [property]: { type: 'string' } }, required: [property] },
  })
const confirmation = () =>
  inputRequired.elicit({
    message: 'Please confirm',
    requestedSchema: { type: 'object', properties: { ok: { type: 'boolean' } }, required: ['ok'] },
  })
const sampling = (prompt: string, maxTokens: number) =>
  inputRequired.createMessage({ messages: [{ role: 'user', content: text(prompt) }], maxTokens })
const done = (value: string): CallToolResult => ({ content: [text(value)] })

const tools: Record<string, Modern> = {
  test_simple_text: () => done('This is a simple text response for testing.'),
  test_image_content: () => ({ content: [image()] }),
  test_audio_content: () => ({ content: [{ type: 'audio', data: silence, mimeType: 'audio/wav' }] }),
  test_embedded_resource: () => ({
    content: [
      {
        type: 'resource',
        resource: {
          uri: 'test://embedded-resource',
          mimeType: 'text/plain',
          text: 'This is an embedded resource content.',
        },
      },
    ],
  }),
  test_multiple_content_types: () => ({
    content: [
      text('Multiple content types test:'),
      image(),
      {
        type: 'resource',
        resource: {
          uri: 'test://mixed-content-resource',
          mimeType: 'application/json',
          text: '{"test":"data","value":123}',
        },
      },
    ],
  }),
  test_error_handling: () => ({
    isError: true,
    ...done('This tool intentionally returns an error for testing'),
  }),
  async test_tool_with_progress({ mcpReq }) {
    const { progressToken } = mcpReq._meta ?? {}
    for (const progress of [0, 50, 100]) {
      if (progressToken === undefined) continue
      const params = { progressToken, progress, total: 100 }
      await mcpReq.notify({ method: 'notifications/progress', params })
    }
    return done('Progress was reported.')
  },
  test_input_required_result_elicitation({ mcpReq }) {
    const name = acceptedContent(mcpReq.inputResponses, 'user_name')?.['name']
    if (typeof name === 'string') return done(`Hello, ${name}!`)
    return inputRequired({ inputRequests: { user_name: question('What is your name?', 'name') } })
  },
  test_input_required_result_sampling({ mcpReq }) {
    const answer = mcpReq.inputResponses?.['capital_question']
    if (answer !== undefined) return done(JSON.stringify(answer))
    return inputRequired({
      inputRequests: { capital_question: sampling('What is the capital of France?', 100) },
    })
  },
  test_input_required_result_list_roots({ mcpReq }) {
    const roots = mcpReq.inputResponses?.['client_roots']
    if (roots !== undefined) return done(JSON.stringify(roots))
    return inputRequired({ inputRequests: { client_roots: inputRequired.listRoots() } })
  },
  async test_input_required_result_request_state({ mcpReq }, codec) {
    if (mcpReq.requestState<State>() !== undefined) return done('state-ok')
    return inputRequired({
      inputRequests: { confirm: confirmation() },
      requestState: await codec.mint({ step: 1 }),
    })
  },
  async test_input_required_result_tampered_state({ mcpReq }, codec) {
    if (mcpReq.requestState<State>() !== undefined) return done('state-ok')
    return inputRequired({
      inputRequests: { confirm: confirmation() },
      requestState: await codec.mint({ step: 1 }),
    })
  },
  test_input_required_result_capabilities({ mcpReq }) {
    if (mcpReq.inputResponses !== undefined) return done(JSON.stringify(mcpReq.inputResponses))
    const declared = envelopeField(mcpReq, CLIENT_CAPABILITIES_META_KEY) ?? {}
    return inputRequired({
      inputRequests: {
        ...('elicitation' in declared ? { name: question('What is your name?', 'name') } : {}),
        ...('sampling' in declared ? { thought: sampling('What do you think?', 50) } : {}),
        ...('roots' in declared ? { roots: inputRequired.listRoots() } : {}),
      },
    })
  },
  test_missing_capability({ mcpReq }) {
    const declared = envelopeField(mcpReq, CLIENT_CAPABILITIES_META_KEY) ?? {}
    if ('sampling' in declared) return done('The client can sample.')
    throw new MissingRequiredClientCapabilityError({ requiredCapabilities: { sampling: {} } })
  },
  test_streaming_elicitation({ mcpReq }) {
    if (mcpReq.inputResponses !== undefined) return done(JSON.stringify(mcpReq.inputResponses))
    return inputRequired({ inputRequests: { confirm: confirmation() } })
  },
  async test_logging_tool({ mcpReq }) {
    if (envelopeField(mcpReq, LOG_LEVEL_META_KEY) !== undefined) {
      await mcpReq.notify({ method: 'notifications/message', params: { level: 'info', data: 'logged' } })
    }
    return done('Logged to those who asked for it.')
  },
  json_schema_2020_12_tool: () => done('Its schema is what counts.'),
  async test_input_required_result_multiple_inputs({ mcpReq }, codec) {
    const { inputResponses: responses = {} } = mcpReq
    const isComplete = ['user_name', 'greeting', 'client_roots'].every((key) => key in responses)
    if (isComplete) return done(JSON.stringify(responses))
    return inputRequired({
      inputRequests: {
        user_name: question('What is your name?', 'name'),
        greeting: sampling('Generate a greeting', 50),
        client_roots: inputRequired.listRoots(),
      },
      requestState: await codec.mint({ step: 1 }),
    })
  },
  async test_input_required_result_multi_round({ mcpReq }, codec) {
    const step = mcpReq.requestState<State>()?.step ?? 0
    if (step === 2) return done('All steps are done.')
    const asked = step === 0 ? 'Step 1: What is your name?' : 'Step 2: What is your favorite color?'
    const property = step === 0 ? 'name' : 'color'
    return inputRequired({
      inputRequests: { [`step${step + 1}`]: question(asked, property) },
      requestState: await codec.mint({ step: step + 1 }),
    })
  },
}

/** The SDK declares the fields of every request by constants, but not as a type. */
function envelopeField({ envelope }: ServerContext['mcpReq'], key: string): object | undefined {
  const value: unknown = envelope === undefined ? undefined : Reflect.get(envelope, key)
  return value === undefined ? undefined : Object(value)
}

const promptName = 'test_input_required_result_prompt'

function createModernServer(codec: StateCodec): Server {
  const server = new Server(
    { name: 'modern-target', version: '1.0.0' },
    {
      capabilities: { tools: {}, resources: {}, prompts: {}, completions: {} },
      requestState: { verify: codec.verify },
    },
  )
  server.setRequestHandler('tools/list', () => ({
    tools: Object.keys(tools).map((name) => ({
      name,
      description: name,
      inputSchema: name === 'json_schema_2020_12_tool' ? schemaWithEverything : noArguments,
    })),
  }))
  server.setRequestHandler('tools/call', async ({ params }, context) => {
    const tool = Object.hasOwn(tools, params.name) ? tools[params.name] : undefined
    if (tool === undefined) throw new ProtocolError(-32602, `Unknown tool: ${params.name}`)
    return tool(context, codec)
  })
  server.setRequestHandler('prompts/list', () => ({
    prompts: [
      ...Object.entries(prompts).map(([name, { get: _, ...prompt }]) => ({ name, ...prompt })),
      { name: promptName, description: 'Asks first.' },
    ],
  }))
  server.setRequestHandler('prompts/get', ({ params }, { mcpReq }) => {
    const { name, arguments: args = {} } = params
    if (name === promptName) {
      const answer = inputResponse(mcpReq.inputResponses, 'user_context')
      if (answer.kind === 'missing') {
        const inputRequests = { user_context: question('What context should the prompt use?', 'context') }
        return inputRequired({ inputRequests })
      }
      return { messages: [{ role: 'user', content: text(JSON.stringify(answer)) }] }
    }
    const prompt = Object.hasOwn(prompts, name) ? prompts[name] : undefined
    if (prompt === undefined) throw new ProtocolError(-32602, `Unknown prompt: ${name}`)
    return { messages: prompt.get(args).map((content) => ({ role: 'user', content })) }
  })
  server.setRequestHandler('completion/complete', () => ({ completion: { values: ['paris', 'park'] } }))
  server.setRequestHandler('resources/list', () => ({ resources }))
  server.setRequestHandler('resources/templates/list', () => ({ resourceTemplates: templates }))
  server.setRequestHandler('resources/read', ({ params: { uri } }) => {
    const content = read(uri)
    if (content === undefined) throw new ProtocolError(-32602, 'Resource not found', { uri })
    return { contents: [content] }
  })
  return server
}

/** Serves the modern target on a free loopback port. */
export async function serveModern(): Promise<{ url: string; close(): Promise<void> }> {
  const codec = createRequestStateCodec<State>({ key: randomBytes(32) })
  const handler = createMcpHandler(() => createModernServer(codec), { legacy: 'reject' })
  const server = createServer((request, response) => {
    if (!/^(localhost|127\.0\.0\.1|\[::1\])(:\d+)?$/.test(request.headers.host ?? '')) {
      response.writeHead(403).end('forbidden host')
      return
    }
    answer(request, response).catch((error: unknown) => response.writeHead(500).end(String(error)))
  })
  async function answer(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = []
    for await (const chunk of incoming) chunks.push(chunk)
    const { method = 'GET', url = '/', headers } = incoming
    const body = method === 'POST' ? { body: Buffer.concat(chunks) } : {}
    const pairs = Object.entries(headers).map(([name, value]): [string, string] => [name, String(value)])
    const request = new Request(new URL(url, `http://${headers.host}`), { method, headers: pairs, ...body })
    const reply = await handler.fetch(request)
    response.writeHead(reply.status, Object.fromEntries(reply.headers))
    if (reply.body === null) response.end()
    else Readable.fromWeb(reply.body).pipe(response)
  }
  const port = await new Promise<number>((resolve, reject) => {
    server.on('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      resolve(address !== null && typeof address === 'object' ? address.port : 0)
    })
  })
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    async close() {
      await handler.close()
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
