import { readEvents } from '../../../api/events.ts'
import { forward } from '../../../api/forward.ts'
import type { ChatRequest } from './chat-request.ts'
import { addChunk, errorOf, noProgress, type Progress, readCompletion } from './completion.ts'
import type { Run } from './conversation.ts'

export type Target = { readonly gateway: string; readonly basePath: string; readonly key: string }

/** Change of a running request. */
export type Update = { readonly progress: Progress; readonly run: Run }

/** Longest text of an error that is displayed, in characters. */
const maxErrorLength = 4_000

/**
 * Sends a chat completion and reports each step of its response. Failures are reported as well: the last update has the
 * state `done`, `stopped` or `failed`.
 */
export async function send(
  target: Target,
  request: ChatRequest,
  { signal, onUpdate, now }: { signal: AbortSignal; onUpdate(update: Update): void; now(): number },
): Promise<void> {
  const start = now()
  let update: Update = {
    progress: noProgress,
    run: { state: 'waiting', request, startedAt: new Date().toISOString() },
  }
  const report = (progress: Progress, run: Partial<Run>) => {
    update = { progress, run: { ...update.run, ...run, ...outcomeOf(progress) } }
    onUpdate(update)
  }
  report(noProgress, {})
  try {
    const response = await forward(target.gateway, `${target.basePath}/chat/completions`, {
      method: 'POST',
      headers: credential(target.key),
      body: request,
      signal,
    })
    const head = { status: response.status, headers: [...response.headers] }
    if (!response.ok) {
      const error = errorOf(parsed((await response.text()).slice(0, maxErrorLength)))
      return report(noProgress, { ...head, state: 'failed', error, totalMs: now() - start })
    }
    if (response.headers.get('content-type')?.includes('text/event-stream') !== true) {
      const progress = readCompletion(parsed(await response.text()))
      return report(progress, { ...head, state: 'done', totalMs: now() - start })
    }
    report(noProgress, { ...head, state: 'streaming' })
    for await (const { data } of readEvents(response)) {
      if (data === '[DONE]') continue
      const progress = addChunk(update.progress, parsed(data))
      report(
        progress,
        update.run.firstTokenMs === undefined && isStarted(progress) ? { firstTokenMs: now() - start } : {},
      )
    }
    const failed = update.progress.error !== undefined
    report(update.progress, { state: failed ? 'failed' : 'done', totalMs: now() - start })
  } catch (error) {
    const totalMs = now() - start
    if (signal.aborted) report(update.progress, { state: 'stopped', totalMs })
    else
      report(update.progress, {
        state: 'failed',
        error: { message: error instanceof Error ? error.message : String(error) },
        totalMs,
      })
  }
}

/** Header with the virtual key; none without a key. */
export function credential(key: string): Record<string, string> {
  return key === '' ? {} : { authorization: `Bearer ${key}` }
}

function isStarted({ text, reasoning, toolCalls }: Progress): boolean {
  return text !== '' || reasoning !== '' || toolCalls.length > 0
}

function outcomeOf({ usage, finishReason, error }: Progress): Partial<Run> {
  return { ...(usage && { usage }), ...(finishReason && { finishReason }), ...(error && { error }) }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
