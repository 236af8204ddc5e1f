// An agent and a client made with the official SDK (A2A). Plain JavaScript, so that types need no SDK.
import { createServer } from 'node:http'
import { formatSSEEvent, Role, TaskState } from '@a2a-js/sdk'
import { ClientFactory } from '@a2a-js/sdk/client'
import {
  AgentEvent,
  DefaultRequestHandler,
  InMemoryPushNotificationStore,
  InMemoryTaskStore,
  JsonRpcTransportHandler,
  ServerCallContext,
} from '@a2a-js/sdk/server'

function textOf({ parts }) {
  return parts.map(({ content }) => (content?.$case === 'text' ? content.value : '')).join('')
}

function textPart(value) {
  return { content: { $case: 'text', value }, metadata: undefined, filename: '', mediaType: '' }
}

/**
 * Starts an agent that responds with a task: complete, or working if the text is `wait`, until it is
 * cancelled.
 *
 * @returns {Promise<{ host: string, seen: { path: string, method?: string }[], close: () => void }>}
 */
export async function startAgent() {
  /** @type {{ path: string, method?: string }[]} */
  const seen = []
  const server = createServer((request, response) => {
    const chunks = []
    request.on('data', (chunk) => chunks.push(chunk))
    request.on('end', () => void respond(request.url ?? '', Buffer.concat(chunks).toString(), response))
  })
  await new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(undefined)))
  const address = server.address()
  const host = `127.0.0.1:${typeof address === 'object' ? address?.port : 0}`
  const card = cardAt(`http://${host}/rpc`)
  const handler = new JsonRpcTransportHandler(
    new DefaultRequestHandler(
      card,
      new InMemoryTaskStore(),
      executor,
      undefined,
      new InMemoryPushNotificationStore(),
      undefined,
      { ...card },
    ),
  )

  async function respond(path, body, response) {
    const message = body === '' ? {} : JSON.parse(body)
    seen.push({ path, method: message.method })
    if (path.includes('/.well-known/')) {
      response.setHeader('content-type', 'application/json').end(JSON.stringify(card))
      return
    }
    const context = new ServerCallContext({ requestedVersion: '1.0' })
    const result = await handler.handle(body, context)
    if (!(Symbol.asyncIterator in result)) {
      response.setHeader('content-type', 'application/json').end(JSON.stringify(result))
      return
    }
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    for await (const event of result) response.write(formatSSEEvent(event))
    response.end()
  }

  return {
    host,
    seen,
    close() {
      server.closeAllConnections()
      server.close()
    },
  }
}

function cardAt(url) {
  return {
    name: 'Weather',
    description: 'Reports the weather.',
    version: '1.0.0',
    provider: undefined,
    securitySchemes: {},
    securityRequirements: [],
    signatures: [],
    skills: [],
    defaultInputModes: ['text'],
    defaultOutputModes: ['text'],
    capabilities: { streaming: true, pushNotifications: true, extendedAgentCard: true, extensions: [] },
    supportedInterfaces: [{ url, protocolBinding: 'JSONRPC', protocolVersion: '1.0', tenant: '' }],
  }
}

function statusOf(state) {
  return { state, message: undefined, timestamp: new Date().toISOString() }
}

const executor = {
  async execute({ userMessage, taskId, contextId }, bus) {
    const text = textOf(userMessage)
    const waits = text === 'wait'
    const task = {
      id: taskId,
      contextId,
      status: statusOf(TaskState.TASK_STATE_WORKING),
      artifacts: [],
      history: [userMessage],
      metadata: undefined,
    }
    bus.publish(AgentEvent.task(task))
    if (waits) return
    const status = statusOf(TaskState.TASK_STATE_COMPLETED)
    bus.publish(AgentEvent.statusUpdate({ taskId, contextId, status, metadata: undefined }))
    bus.finished()
  },
  async cancelTask(taskId, bus) {
    const status = statusOf(TaskState.TASK_STATE_CANCELED)
    bus.publish(AgentEvent.statusUpdate({ taskId, contextId: '', status, metadata: undefined }))
    bus.finished()
  },
}

/**
 * A message of a user.
 *
 * @param {string} text
 * @returns {any}
 */
export function userMessage(text) {
  return {
    messageId: crypto.randomUUID(),
    contextId: '',
    taskId: '',
    role: Role.ROLE_USER,
    parts: [textPart(text)],
    metadata: undefined,
    extensions: [],
    referenceTaskIds: [],
  }
}

/**
 * Creates a client of the agent with the card at an address.
 *
 * @param {string} origin
 * @param {string} cardPath
 * @returns {Promise<any>}
 */
export function createAgentClient(origin, cardPath) {
  return new ClientFactory().createFromUrl(origin, cardPath)
}
