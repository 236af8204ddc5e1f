import { isJsonObject, type JsonObject, type JsonValue } from '../../../../lib/json/json.ts'
import type { StreamBudget } from '../limits.ts'

/** Origin of thinking in `reasoning_details`, a field of other servers of chat completions. */
const format = 'anthropic-claude-v1'

/** Blocks of thinking for `reasoning_details`: the API accepts only its own, with their signatures. */
export function thinkingBlocks(details: JsonValue | undefined): JsonObject[] {
  if (!Array.isArray(details)) return []
  return details.flatMap((detail): JsonObject[] => {
    if (!isJsonObject(detail) || detail.format !== format) return []
    const { type, text, signature, data } = detail
    if (type === 'reasoning.encrypted' && typeof data === 'string')
      return [{ type: 'redacted_thinking', data }]
    const isSigned = typeof text === 'string' && typeof signature === 'string' && signature !== ''
    return type === 'reasoning.text' && isSigned ? [{ type: 'thinking', thinking: text, signature }] : []
  })
}

/** A detail for a block of thinking; undefined for other blocks, and for thinking without a signature. */
export function thinkingDetail(block: JsonObject): JsonObject | undefined {
  const { type, thinking, signature, data } = block
  if (type === 'redacted_thinking' && typeof data === 'string')
    return { type: 'reasoning.encrypted', data, format }
  const isSigned = typeof thinking === 'string' && typeof signature === 'string' && signature !== ''
  return type === 'thinking' && isSigned
    ? { type: 'reasoning.text', text: thinking, signature, format }
    : undefined
}

/** Collects the thinking of a streamed message, whose blocks are returned as a whole. */
export type ThinkingCollector = {
  /** Reads an event of the stream; returns the detail of a block that ends. */
  read(event: JsonObject): JsonObject | undefined
}

export function createThinkingCollector(budget: Pick<StreamBudget, 'addText'>): ThinkingCollector {
  let open: { block: JsonObject; thinking: string; signature: string } | undefined
  return {
    read({ type, content_block: block, delta }) {
      if (type === 'content_block_start')
        open = isJsonObject(block) && isThinking(block) ? { block, thinking: '', signature: '' } : undefined
      if (open === undefined) return undefined
      if (type === 'content_block_delta' && isJsonObject(delta)) {
        const { thinking = '', signature = '' } = delta
        budget.addText(String(thinking).length + String(signature).length)
        open.thinking += String(thinking)
        open.signature += String(signature)
      }
      if (type !== 'content_block_stop') return undefined
      const { block: opening, thinking, signature } = open
      open = undefined
      return thinkingDetail({ ...opening, thinking, signature })
    },
  }
}

function isThinking({ type }: JsonObject): boolean {
  return type === 'thinking' || type === 'redacted_thinking'
}
