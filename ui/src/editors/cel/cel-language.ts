import { StreamLanguage, type StringStream } from '@codemirror/language'

const words = new Map([
  ['in', 'keyword'],
  ['true', 'bool'],
  ['false', 'bool'],
  ['null', 'null'],
])

/** Colours of CEL expressions. */
export const celLanguage = StreamLanguage.define<{ quote: string | undefined }>({
  name: 'cel',
  startState: () => ({ quote: undefined }),
  copyState: (state) => ({ ...state }),
  token: (stream, state) => (state.quote === undefined ? tokenOf(stream, state) : restOfText(stream, state)),
  languageData: { closeBrackets: { brackets: ['(', '[', '{', '"', "'"] } },
})

function tokenOf(stream: StringStream, state: { quote: string | undefined }): string | null {
  if (stream.eatSpace()) return null
  if (stream.match('//')) {
    stream.skipToEnd()
    return 'comment'
  }
  const opening = stream.match(/^[rRbB]{0,2}("""|'''|"|')/)
  if (opening && opening !== true) {
    state.quote = opening[1]
    return restOfText(stream, state)
  }
  if (stream.match(/^(?:0x[\da-f]+|\d+(?:\.\d+)?(?:e[-+]?\d+)?)u?/i)) return 'number'
  if (stream.match(/^(?:&&|\|\||[=!<>]=|[-+*/%!<>?:])/)) return 'operator'
  const word = stream.match(/^[A-Za-z_]\w*/)
  if (word && word !== true) {
    if (stream.peek() === '(') return 'variableName.function'
    return words.get(word[0]) ?? 'variableName'
  }
  stream.next()
  return 'punctuation'
}

function restOfText(stream: StringStream, state: { quote: string | undefined }): string {
  const { quote = '"' } = state
  while (!stream.eol()) {
    if (stream.match('\\')) stream.next()
    else if (stream.match(quote)) {
      state.quote = undefined
      return 'string'
    } else stream.next()
  }
  if (quote.length === 1) state.quote = undefined
  return 'string'
}
