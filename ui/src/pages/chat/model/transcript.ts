import type { Panel } from '../chat-store.ts'
import type { Run, Settings, Turn } from './conversation.ts'

/** The conversations as a JSON document, without keys. */
export function jsonTranscript(panels: readonly Panel[], settings: Settings): string {
  return `${JSON.stringify({ settings, conversations: panels.map(({ model, turns }) => ({ model, turns })) }, null, 2)}\n`
}

/** The conversations as a Markdown document. */
export function markdownTranscript(panels: readonly Panel[], { system }: Settings): string {
  return [
    ...(system.trim() === '' ? [] : ['# System prompt', '', system, '']),
    ...panels.flatMap(({ model, turns }) => [`# ${model}`, '', ...turns.flatMap(turnLines)]),
  ].join('\n')
}

function turnLines(turn: Turn): string[] {
  switch (turn.kind) {
    case 'user':
      return ['## User', '', turn.text, ...turn.images.map(({ name }) => `(image: ${name})`), '']
    case 'result':
      return ['## Tool result', '', '```', turn.text, '```', '']
    case 'answer':
      return [
        `## ${turn.model}`,
        '',
        turn.text,
        ...turn.toolCalls.map(({ name, arguments: text }) => `- calls \`${name}(${text})\``),
        '',
        ...factsOf(turn.run),
      ]
  }
}

function factsOf({ error, usage, totalMs }: Run): string[] {
  const facts = [
    error && `error: ${error.message}`,
    usage && `${usage.inputTokens} input tokens, ${usage.outputTokens} output tokens`,
    totalMs !== undefined && `${Math.round(totalMs)} ms`,
  ].filter((fact) => typeof fact === 'string')
  return facts.length > 0 ? [`> ${facts.join('; ')}`, ''] : []
}
