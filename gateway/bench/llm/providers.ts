import { modelConfig, testedRows } from '../../test/support/llm-matrix/providers.ts'
import { requestText } from '../measure/request.ts'
import { chosenWorkloads, type Stage, workersOf } from '../measure/stage.ts'
import type { BenchOptions } from '../options.ts'
import { type Subject, startScript } from '../subjects/processes.ts'
import { benchKey, startTollgate } from '../subjects/tollgate.ts'
import { requestBody, type Workload } from './workloads.ts'

type Call = { readonly path: string; readonly body: object }

const path = { chat: '/v1/chat/completions', messages: '/v1/messages', responses: '/v1/responses' }
const geminiPath = '/v1/projects/team/locations/global/publishers/google/models/gemini:generateContent'

/** The texts of a chat completion request of 1 kB, whose first message is the system prompt. */
const { messages }: { messages: { role: string; content: string }[] } = JSON.parse(
  requestBody('bench-model', false, 1024).toString(),
)
const [system = { content: '' }, ...turns] = messages
const contents = turns.map(({ role, content }) => ({
  role: role === 'user' ? 'user' : 'model',
  parts: [{ text: content }],
}))

function chatTo(model: string, stream: boolean): Call {
  return { path: path.chat, body: { model, stream, temperature: 0.2, messages } }
}

function messagesTo(model: string, stream: boolean): Call {
  const body = { model, stream, temperature: 0.2, max_tokens: 1000, system: system.content, messages: turns }
  return { path: path.messages, body }
}

function responsesTo(model: string, stream: boolean): Call {
  const body = { model, stream, temperature: 0.2, instructions: system.content, input: turns }
  return { path: path.responses, body }
}

/** Requests in the API of the provider. */
const sameApi: Readonly<Record<string, Call>> = {
  tollgate: chatTo('openai', false),
  azure: chatTo('azure', false),
  anthropic: messagesTo('anthropic', false),
  'vertex Claude': messagesTo('vertex-claude', false),
  'bedrock Claude': messagesTo('bedrock-claude', false),
  gemini: { path: geminiPath, body: { contents } },
}

/** Requests that are translated, besides those of `tollgate`. */
function translated(stream: boolean): Readonly<Record<string, Call>> {
  return {
    tollgate: chatTo('openai', stream),
    'chat to messages': chatTo('anthropic', stream),
    'chat to Converse': chatTo('bedrock', stream),
    'chat to Gemini': chatTo('gemini', stream),
    'messages to chat': messagesTo('openai', stream),
    'responses to chat': responsesTo('mistral', stream),
  }
}

const common = { body: requestBody('openai', false, 1024), ending: '}', connections: 16 }

const cases: readonly { workload: Workload; calls: Readonly<Record<string, Call>> }[] = [
  {
    workload: { ...common, name: 'providers', title: '1 kB calls in the API of the provider', target: 1.35 },
    calls: sameApi,
  },
  {
    workload: { ...common, name: 'translate', title: '1 kB calls, translated', target: 1.35 },
    calls: translated(false),
  },
  {
    workload: {
      ...common,
      name: 'translate-stream',
      title: 'streams of about 200 chunks, translated',
      body: requestBody('openai', true, 1024),
      ending: '\n\n',
      target: 1.5,
    },
    calls: translated(true),
  },
]

/** Calls of several providers, all served by one gateway: a subject per call, with the same process. */
export async function providerStages(options: BenchOptions): Promise<Stage[]> {
  const { placement, entry } = options
  const chosen = cases.filter(({ workload }) => chosenWorkloads(options, [workload]).length > 0)
  if (chosen.length === 0) return []
  const { port } = await startScript('llm/vendors.ts', (own) => [String(own)], { cpus: placement.upstream })
  const url = `http://127.0.0.1:${port}`
  return chosen.map(({ workload, calls }) => {
    const requestsTo = async (subject: Subject) => {
      const call = calls[subject.name]
      return call && [requestOf(subject, call)]
    }
    let tollgate: Subject
    return {
      workloads: chosenWorkloads(options, [{ ...workload, requestsTo }]),
      startRelay: (nodeFlags) =>
        startScript('llm/relay.ts', (own) => [String(own), String(port)], {
          nodeFlags,
          cpus: placement.gateway,
        }),
      async startGateway(nodeFlags = options.nodeFlags) {
        const started = await startTollgate({
          ...{ upstreamPort: port, nodeFlags, entry, cpus: placement.gateway, workers: workersOf(options) },
          models: testedRows.map((row) => modelConfig(row, { url })),
        })
        tollgate = started
        return started
      },
      async startOthers() {
        const names = Object.keys(calls).filter((name) => name !== 'tollgate')
        return names.map((name) => ({ ...tollgate, name, end: async () => {} }))
      },
    }
  })
}

function requestOf(subject: Subject, call: Call): string {
  const headers = {
    'content-type': 'application/json',
    accept: 'application/json',
    'user-agent': 'bench',
    authorization: `Bearer ${benchKey}`,
  }
  return requestText(subject, { method: 'POST', path: call.path, headers, body: JSON.stringify(call.body) })
}
