import { Server } from '@modelcontextprotocol/sdk/server/index.js'
import {
  CallToolRequestSchema,
  CompleteRequestSchema,
  ErrorCode,
  GetPromptRequestSchema,
  ListPromptsRequestSchema,
  ListResourcesRequestSchema,
  ListResourceTemplatesRequestSchema,
  ListToolsRequestSchema,
  McpError,
  ReadResourceRequestSchema,
  SetLevelRequestSchema,
  SubscribeRequestSchema,
  UnsubscribeRequestSchema,
} from '@modelcontextprotocol/sdk/types.js'
import { prompts } from './prompts.ts'
import { read, resources, templates } from './resources.ts'
import { tools } from './tools.ts'

/** One session of a server on the official SDK with every feature that the conformance suite covers. */
export function createConformanceServer(): Server {
  const server = new Server(
    { name: 'conformance-target', version: '1.0.0' },
    {
      capabilities: {
        tools: { listChanged: true },
        resources: { subscribe: true, listChanged: true },
        prompts: { listChanged: true },
        logging: {},
        completions: {},
      },
      instructions: 'A server for tests.',
    },
  )

  server.setRequestHandler(ListToolsRequestSchema, () => ({
    tools: Object.entries(tools).map(([name, { description, inputSchema }]) => ({
      name,
      description,
      inputSchema: inputSchema ?? { type: 'object' },
    })),
  }))
  server.setRequestHandler(CallToolRequestSchema, (request, extra) => {
    const { name, arguments: args = {} } = request.params
    const tool = Object.hasOwn(tools, name) ? tools[name] : undefined
    if (tool === undefined) throw new McpError(ErrorCode.InvalidParams, `Unknown tool: ${name}`)
    return tool.run(args, extra, server)
  })

  server.setRequestHandler(ListPromptsRequestSchema, () => ({
    prompts: Object.entries(prompts).map(([name, { get: _, ...prompt }]) => ({ name, ...prompt })),
  }))
  server.setRequestHandler(GetPromptRequestSchema, (request) => {
    const { name, arguments: args = {} } = request.params
    const prompt = Object.hasOwn(prompts, name) ? prompts[name] : undefined
    if (prompt === undefined) throw new McpError(ErrorCode.InvalidParams, `Unknown prompt: ${name}`)
    return { messages: prompt.get(args).map((content) => ({ role: 'user', content })) }
  })
  server.setRequestHandler(CompleteRequestSchema, ({ params }) => {
    const values = ['paris', 'park', 'party'].filter((value) => value.startsWith(params.argument.value))
    return { completion: { values, total: values.length, hasMore: false } }
  })

  server.setRequestHandler(ListResourcesRequestSchema, () => ({ resources }))
  server.setRequestHandler(ListResourceTemplatesRequestSchema, () => ({ resourceTemplates: templates }))
  server.setRequestHandler(ReadResourceRequestSchema, ({ params: { uri } }) => {
    const content = read(uri)
    if (content === undefined) throw new McpError(-32002, `Resource not found: ${uri}`, { uri })
    return { contents: [content] }
  })
  server.setRequestHandler(SubscribeRequestSchema, () => ({}))
  server.setRequestHandler(UnsubscribeRequestSchema, () => ({}))
  server.setRequestHandler(SetLevelRequestSchema, () => ({}))
  return server
}
