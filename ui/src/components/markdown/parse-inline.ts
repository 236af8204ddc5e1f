/** Text within a block. */
export type Inline =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'code'; readonly text: string }
  | { readonly kind: 'strong' | 'emphasis' | 'strike'; readonly content: readonly Inline[] }
  | { readonly kind: 'link'; readonly address: string; readonly content: readonly Inline[] }
  | { readonly kind: 'break' }

const maxDepth = 6

/** Emphasis marks, longest first. Underscores count only at the borders of words. */
const marks = [
  { mark: '**', kind: 'strong', word: false },
  { mark: '__', kind: 'strong', word: true },
  { mark: '~~', kind: 'strike', word: false },
  { mark: '*', kind: 'emphasis', word: false },
  { mark: '_', kind: 'emphasis', word: true },
] as const

type Found = { readonly inline: Inline; readonly end: number }

/** Parses code, emphasis and links of Markdown. Anything else, HTML included, stays text. */
export function parseInline(text: string, depth = 0): readonly Inline[] {
  const parts: Inline[] = []
  // A mark without an end is searched once: a text of stars alone stays linear.
  const unclosed = new Set<string>()
  let plain = ''
  let position = 0
  const flush = () => {
    if (plain !== '') parts.push({ kind: 'text', text: plain })
    plain = ''
  }
  while (position < text.length) {
    const found = depth < maxDepth ? findAt(text, position, depth, unclosed) : undefined
    if (found) {
      flush()
      parts.push(found.inline)
      position = found.end
    } else if (text[position] === '\\' && /[!-/:-@[-`{-~]/.test(text[position + 1] ?? '')) {
      plain += text[position + 1]
      position += 2
    } else {
      plain += text[position]
      position += 1
    }
  }
  flush()
  return parts
}

function findAt(text: string, position: number, depth: number, unclosed: Set<string>): Found | undefined {
  switch (text[position]) {
    case '\n':
      return { inline: { kind: 'break' }, end: position + 1 }
    case '`':
      return codeAt(text, position, unclosed)
    case '[':
      return linkAt(text, position, depth, unclosed)
    case '*':
    case '_':
    case '~':
      return emphasisAt(text, position, depth, unclosed)
    default:
      return undefined
  }
}

function codeAt(text: string, position: number, unclosed: Set<string>): Found | undefined {
  let size = 1
  while (text[position + size] === '`') size += 1
  const fence = '`'.repeat(size)
  if (unclosed.has(fence)) return undefined
  const end = text.indexOf(fence, position + size)
  if (end === -1) {
    unclosed.add(fence)
    return undefined
  }
  const content = text.slice(position + size, end)
  return {
    inline: { kind: 'code', text: content.trim() === '' ? content : content.trim() },
    end: end + size,
  }
}

function linkAt(text: string, position: number, depth: number, unclosed: Set<string>): Found | undefined {
  if (unclosed.has('](')) return undefined
  const middle = text.indexOf('](', position)
  if (middle === -1) {
    unclosed.add('](')
    return undefined
  }
  // The nearest end belongs to another link if a further one begins before it.
  if (middle - position > 1_000 || text.slice(position + 1, middle).includes('[')) return undefined
  const end = text.indexOf(')', middle)
  if (end === -1 || end - middle > 2_000) return undefined
  const address = safeAddress(text.slice(middle + 2, end).trim())
  if (address === undefined) return undefined
  return {
    inline: { kind: 'link', address, content: parseInline(text.slice(position + 1, middle), depth + 1) },
    end: end + 1,
  }
}

function emphasisAt(text: string, position: number, depth: number, unclosed: Set<string>): Found | undefined {
  for (const { mark, kind, word } of marks) {
    if (!text.startsWith(mark, position) || unclosed.has(mark)) continue
    if (/\s/.test(text[position + mark.length] ?? ' ')) continue
    if (word && /\w/.test(text[position - 1] ?? ' ')) continue
    const end = closingOf(text, position + mark.length, mark, word)
    if (end === -1) {
      unclosed.add(mark)
      continue
    }
    const content = parseInline(text.slice(position + mark.length, end), depth + 1)
    return { inline: { kind, content }, end: end + mark.length }
  }
  return undefined
}

function closingOf(text: string, from: number, mark: string, word: boolean): number {
  for (let end = text.indexOf(mark, from); end !== -1; end = text.indexOf(mark, end + 1)) {
    if (end === from || /\s/.test(text[end - 1] ?? ' ')) continue
    // A single star inside a double one is the end of strong text, not of emphasis.
    if (mark.length === 1 && (text[end + 1] === mark || text[end - 1] === mark)) continue
    if (word && /\w/.test(text[end + mark.length] ?? ' ')) continue
    return end
  }
  return -1
}

/** Web and mail addresses only: no script and no data. */
function safeAddress(text: string): string | undefined {
  return /^(?:https?:\/\/|mailto:)[^\s]+$/i.test(text) && URL.canParse(text) ? text : undefined
}
