import { setTimeout as delay } from 'node:timers/promises'
import type { Server } from '@modelcontextprotocol/sdk/server/index.js'
import type { RequestHandlerExtra } from '@modelcontextprotocol/sdk/shared/protocol.js'
import {
  type CallToolResult,
  CallToolResultSchema,
  CreateMessageResultSchema,
  type ElicitRequestFormParams,
  ElicitResultSchema,
  type ServerNotification,
  type ServerRequest,
  type Tool,
} from '@modelcontextprotocol/sdk/types.js'
import { image, schemaWithEverything, silence, text } from './content.ts'

export type Extra = RequestHandlerExtra<ServerRequest, ServerNotification>
type Arguments = Record<string, unknown>

type ConformanceTool = {
  description: string
  inputSchema?: Tool['inputSchema']
  run(args: Arguments, extra: Extra, server: Server): Promise<CallToolResult> | CallToolResult
}

const stepMs = 50

/** The tools the official suite calls, by name. */
export const tools: Record<string, ConformanceTool> = {
  test_simple_text: {
    description: 'Answers with a text.',
    run: () => ({ content: [text('This is a simple text response for testing.')] }),
  },
  test_image_content: {
    description: 'Answers with an image.',
    run: () => ({ content: [image()] }),
  },
  test_audio_content: {
    description: 'Answers with a sound.',
    run: () => ({ content: [{ type: 'audio', data: silence, mimeType: 'audio/wav' }] }),
  },
  test_embedded_resource: {
    description: 'Answers with a resource.',
    run: () => ({
      content: [resource('test://embedded-resource', 'text/plain', 'This is an embedded resource content.')],
    }),
  },
  test_multiple_content_types: {
    description: 'Answers with a text, an image and a resource.',
    run: () => ({
      content: [
        text('Multiple content types test:'),
        image(),
        resource('test://mixed-content-resource', 'application/json', '{"test":"data","value":123}'),
      ],
    }),
  },
  test_tool_with_logging: {
    description: 'Logs three times while it runs.',
    async run(_, extra) {
      for (const data of ['Tool execution started', 'Tool processing data', 'Tool execution completed']) {
        await extra.sendNotification({ method: 'notifications/message', params: { level: 'info', data } })
        await delay(stepMs)
      }
      return { content: [text('Logged three times.')] }
    },
  },
  test_error_handling: {
    description: 'Fails.',
    run: () => ({
      isError: true,
      content: [text('This tool intentionally returns an error for testing')],
    }),
  },
  test_tool_with_progress: {
    description: 'Reports its progress, if asked to.',
    async run(_, extra) {
      const progressToken = extra._meta?.progressToken
      for (const progress of [0, 50, 100]) {
        if (progressToken !== undefined) {
          const params = { progressToken, progress, total: 100 }
          await extra.sendNotification({ method: 'notifications/progress', params })
        }
        await delay(stepMs)
      }
      return { content: [text(`Progress went to ${String(progressToken)}`)] }
    },
  },
  test_sampling: {
    description: 'Asks the model of the client.',
    inputSchema: {
      type: 'object',
      properties: { prompt: { type: 'string', description: 'What to ask.' } },
      required: ['prompt'],
    },
    async run({ prompt }, extra) {
      const { content } = await extra.sendRequest(
        {
          method: 'sampling/createMessage',
          params: { messages: [{ role: 'user', content: text(String(prompt)) }], maxTokens: 100 },
        },
        CreateMessageResultSchema,
      )
      return { content: [text(`LLM response: ${content.type === 'text' ? content.text : content.type}`)] }
    },
  },
  test_elicitation: {
    description: 'Asks the user.',
    inputSchema: {
      type: 'object',
      properties: { message: { type: 'string', description: 'What to say to the user.' } },
      required: ['message'],
    },
    async run({ message }, extra) {
      const { action, content } = await ask(extra, String(message), {
        type: 'object',
        properties: {
          username: { type: 'string', description: "User's response" },
          email: { type: 'string', description: "User's email address" },
        },
        required: ['username', 'email'],
      })
      return { content: [text(`User response: action=${action}, content=${JSON.stringify(content ?? {})}`)] }
    },
  },
  test_elicitation_sep1034_defaults: {
    description: 'Asks the user with a default for every type.',
    async run(_, extra) {
      const { action, content } = await ask(extra, 'Please look at these defaults', {
        type: 'object',
        properties: {
          name: { type: 'string', default: 'John Doe' },
          age: { type: 'integer', default: 30 },
          score: { type: 'number', default: 95.5 },
          status: { type: 'string', enum: ['active', 'inactive', 'pending'], default: 'active' },
          verified: { type: 'boolean', default: true },
        },
        required: [],
      })
      return elicited(action, content)
    },
  },
  test_elicitation_sep1330_enums: {
    description: 'Asks the user with every kind of choice.',
    async run(_, extra) {
      const options = ['option1', 'option2', 'option3']
      const titled = (word: string) => [
        { const: 'value1', title: `First ${word}` },
        { const: 'value2', title: `Second ${word}` },
        { const: 'value3', title: `Third ${word}` },
      ]
      const { action, content } = await ask(extra, 'Please choose', {
        type: 'object',
        properties: {
          untitledSingle: { type: 'string', enum: options },
          titledSingle: { type: 'string', oneOf: titled('Option') },
          legacyEnum: {
            type: 'string',
            enum: ['opt1', 'opt2', 'opt3'],
            enumNames: ['Option One', 'Option Two', 'Option Three'],
          },
          untitledMulti: { type: 'array', items: { type: 'string', enum: options } },
          titledMulti: { type: 'array', items: { anyOf: titled('Choice') } },
        },
        required: [],
      })
      return elicited(action, content)
    },
  },
  json_schema_2020_12_tool: {
    description: 'Tool with JSON Schema 2020-12 features',
    inputSchema: schemaWithEverything,
    run: (args) => ({ content: [text(JSON.stringify(args))] }),
  },
  test_reconnection: {
    description: 'Closes the event stream while it runs; the answer waits for the client to reconnect.',
    async run(_, extra) {
      extra.closeSSEStream?.()
      await delay(2 * stepMs)
      return { content: [text('Reconnected.')] }
    },
  },
  test_roots: {
    description: 'Asks for the roots of the client, as a request that belongs to no call.',
    async run(_, __, server) {
      const { roots } = await server.listRoots()
      return { content: [text(roots.map(({ uri }) => uri).join(','))] }
    },
  },
  test_list_changed: {
    description: 'Says that the lists have changed, and that the watched resource has.',
    async run(_, __, server) {
      await server.sendToolListChanged()
      await server.sendResourceUpdated({ uri: 'test://watched-resource' })
      return { content: [text('Said so.')] }
    },
  },
}

function ask(extra: Extra, message: string, requestedSchema: ElicitRequestFormParams['requestedSchema']) {
  return extra.sendRequest(
    { method: 'elicitation/create', params: { message, requestedSchema } },
    ElicitResultSchema,
  )
}

function elicited(action: string, content: unknown): CallToolResult {
  return CallToolResultSchema.parse({
    content: [text(`Elicitation completed: action=${action}, content=${JSON.stringify(content ?? {})}`)],
  })
}

function resource(uri: string, mimeType: string, value: string) {
  return { type: 'resource' as const, resource: { uri, mimeType, text: value } }
}
