import { editTopLevel, memberText } from '../../../lib/json/edit.ts'
import { isJsonObject } from '../../../lib/json/json.ts'
import type { Message, MessageSink } from '../message/message.ts'

/**
 * Makes cacheable results private (MCP 2026-07-28, Caching): rules and guards decide for one client, and the
 * target does not know them, so a shared cache must not serve its results to others.
 */
export function withPrivateResults(sink: MessageSink): MessageSink {
  return {
    message: (message, mark) => sink.message(withPrivateResult(message), mark),
    mark: (mark) => sink.mark(mark),
    end: () => sink.end(),
    fail: (failure) => sink.fail(failure),
  }
}

/** The message was read strictly, so its texts are edited without another read: lists may be large. */
function withPrivateResult(message: Message): Message {
  const { result } = message.value
  if (!isJsonObject(result)) return message
  const { cacheScope } = result
  if (cacheScope === undefined || cacheScope === 'private') return message
  const json = { kind: 'object', ...message } as const
  const resultText = memberText(json, 'result') ?? '{}'
  const edited = editTopLevel(
    { kind: 'object', text: resultText, value: result },
    { set: new Map([['cacheScope', '"private"']]) },
  )
  return {
    text: editTopLevel(json, { set: new Map([['result', edited]]) }),
    value: { ...message.value, result: { ...result, cacheScope: 'private' } },
  }
}
