/** Function of `config.customFunctions`: `name(a, b) { body }`, or `this.name(a, rest...) { body }`. */
export type CustomFunction = {
  readonly name: string
  /** Called on a value, which is `this` in the body. */
  readonly isMethod: boolean
  readonly parameters: readonly string[]
  /** Parameter that receives the other arguments as a list. */
  readonly rest: string | undefined
  readonly body: string
  /** The whole definition. */
  readonly text: string
  /** Offsets of the definition and of its body in the text of all definitions. */
  readonly offset: number
  readonly bodyOffset: number
}

export type ParsedFunctions =
  | { readonly kind: 'functions'; readonly functions: readonly CustomFunction[] }
  | { readonly kind: 'issue'; readonly message: string; readonly offset: number }

const header = /(this\.)?([A-Za-z_]\w*)\s*\(([^(){}]*)\)\s*\{/y
const gap = /(?:\s+|#[^\n]*)*/y

/** Parses definitions, separated by white space and comments (`# …`). Bodies are not parsed. */
export function parseCustomFunctions(text: string): ParsedFunctions {
  const functions: CustomFunction[] = []
  const names = new Set<string>()
  let at = skipGap(text, 0)
  while (at < text.length) {
    header.lastIndex = at
    const found = header.exec(text)
    if (found === null || found[2] === 'this')
      return issue('a function is name(a, b) { expression } or this.name(a) { expression }', at)
    const [, receiver, name = '', list = ''] = found
    const end = endOfBody(text, header.lastIndex)
    if (end === undefined) return issue(`the body of ${name} must end with }`, at)
    if (names.has(name)) return issue(`${name} is defined twice`, at)
    names.add(name)
    const parameters = list.trim() === '' ? [] : list.split(',').map((parameter) => parameter.trim())
    const rest = parameters.at(-1)?.endsWith('...') ? parameters.pop()?.slice(0, -3).trim() : undefined
    const wrong = [...parameters, ...(rest === undefined ? [] : [rest])].find((each) => !isParameter(each))
    if (wrong !== undefined)
      return issue(`"${wrong}" is not a parameter: use a name; only the last may end with ...`, at)
    functions.push({
      ...{ name, isMethod: receiver !== undefined, parameters, rest, offset: at },
      body: text.slice(header.lastIndex, end),
      text: text.slice(at, end + 1),
      bodyOffset: header.lastIndex,
    })
    at = skipGap(text, end + 1)
  }
  return { kind: 'functions', functions }
}

function issue(message: string, offset: number): ParsedFunctions {
  return { kind: 'issue', message, offset }
}

function isParameter(name: string): boolean {
  return /^[A-Za-z_]\w*$/.test(name) && name !== 'this'
}

function skipGap(text: string, at: number): number {
  gap.lastIndex = at
  gap.test(text)
  return gap.lastIndex
}

/** Index of the brace that ends a body; braces in quotes do not count. */
function endOfBody(text: string, start: number): number | undefined {
  let depth = 1
  let quote = ''
  for (let index = start; index < text.length; index += 1) {
    const character = text.charAt(index)
    if (quote !== '') {
      if (character === '\\') index += 1
      else if (character === quote) quote = ''
    } else if (character === '"' || character === "'") quote = character
    else if (character === '{') depth += 1
    else if (character === '}') depth -= 1
    if (depth === 0) return index
  }
  return undefined
}

const marker = '\n//# function '

/**
 * Adds the definitions that an expression uses, directly or through others, as comments behind it. The
 * compiler reads them, so that an expression is complete, and equal texts have equal meanings.
 */
export function withCustomFunctions(source: string, functions: readonly CustomFunction[]): string {
  const { main } = splitDefinitions(source)
  const used = new Set<CustomFunction>()
  const add = (text: string) => {
    for (const each of functions) {
      if (used.has(each) || !new RegExp(`\\b${each.name}\\s*\\(`).test(text)) continue
      used.add(each)
      add(each.body)
    }
  }
  add(main)
  return [main, ...[...used].map(({ text }) => `${marker}${JSON.stringify(text)}`)].join('')
}

/** Separates an expression from the definitions behind it. */
export function splitDefinitions(source: string): { main: string; functions: readonly CustomFunction[] } {
  const at = source.indexOf(marker)
  if (at < 0) return { main: source, functions: [] }
  const texts = source.slice(at + marker.length).split(marker)
  return { main: source.slice(0, at), functions: texts.flatMap(readDefinition) }
}

function readDefinition(text: string): readonly CustomFunction[] {
  try {
    const parsed = parseCustomFunctions(String(JSON.parse(text)))
    return parsed.kind === 'functions' ? parsed.functions : []
  } catch {
    return []
  }
}
