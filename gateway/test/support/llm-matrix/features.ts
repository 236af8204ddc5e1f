import type { Answer, Ask } from '../llm-clients/client.ts'
import { generate, type Received } from '../vendors/scripted-model.ts'

/** A feature of conversations: a request, and the parts of it that vendor and client must receive. */
export type Feature = {
  readonly name: string
  readonly ask: Ask
  /** APIs of clients without the feature. */
  readonly absentIn?: readonly string[]
  /** Results of the calls that the first response contains, in a second request. */
  readonly results?: readonly string[]
  /** Parts that a vendor must receive. */
  sent?(received: Received): boolean
  /** Parts that the client must receive, beside text, calls and tokens. */
  returned?(answer: Answer): boolean
}

export const schema = {
  type: 'object',
  properties: { city: { type: 'string' } },
  required: ['city'],
  additionalProperties: false,
}

const image = Buffer.from('an image').toString('base64')
const document = Buffer.from('%PDF-1.7 a document').toString('base64')
const tool = 'get_weather'

export const features: readonly Feature[] = [
  { name: 'text', ask: { text: 'Hi' } },
  { name: 'streamed text', ask: { text: 'Hi there', streaming: true } },
  {
    name: 'tools',
    ask: { text: 'Weather?', tool, schema },
    results: ['hot'],
    sent: ({ tools }) => tools[0] === tool,
  },
  {
    name: 'parallel tools, streamed',
    ask: { text: 'Weather of both?', tool, schema, streaming: true },
    results: ['hot', 'cold'],
    sent: ({ tools }) => tools[0] === tool,
  },
  {
    name: 'structured output',
    ask: { text: 'A city', schema },
    sent: ({ hasSchema }) => hasSchema,
  },
  { name: 'images', ask: { text: 'See', image }, sent: ({ images }) => images[0] === image },
  { name: 'documents', ask: { text: 'Read', document }, sent: ({ documents }) => documents[0] === document },
  {
    name: 'reasoning',
    ask: { text: 'Think', reasons: true },
    sent: ({ reasons }) => reasons,
    returned: ({ reasoning }) => reasoning === 'Let me see.',
  },
  {
    name: 'streamed reasoning',
    ask: { text: 'Think it', reasons: true, streaming: true },
    sent: ({ reasons }) => reasons,
    returned: ({ reasoning }) => reasoning === 'Let me see.',
  },
  {
    name: 'stop sequences',
    ask: { text: 'Count', stop: 'three' },
    absentIn: ['responses'],
    sent: ({ stops }) => stops[0] === 'three',
  },
]

/** Parts of a feature that are lost between client and vendor; empty if it is complete. */
export function lossesOf({ sent, returned }: Feature, received: Received, answer: Answer): string[] {
  const generated = generate(received)
  const calls = generated.calls.map(({ name, input }) => JSON.stringify([name, input]))
  const { tokens } = answer
  const checks: [lost: string, isComplete: boolean][] = [
    ['system prompt', received.text.includes('You are terse.')],
    ['request', sent?.(received) ?? true],
    ['text', answer.text === generated.text],
    ['calls', answer.calls.map(({ name, input }) => JSON.stringify([name, input])).join() === calls.join()],
    ['response', returned?.(answer) ?? true],
    ['tokens', tokens.input === generated.tokens.input && tokens.output === generated.tokens.output],
  ]
  return checks.flatMap(([lost, isComplete]) => (isComplete ? [] : [lost]))
}
