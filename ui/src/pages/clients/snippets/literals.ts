/** Longest value on one line. */
const maxWidth = 76

/** JSON with short lists and objects on one line. */
export function jsonLiteral(value: unknown, indent = 0): string {
  return literal(value, indent, { step: 2, key: JSON.stringify, scalar: JSON.stringify })
}

/** A TypeScript expression for a JSON value. */
export function scriptLiteral(value: unknown, indent = 0): string {
  const key = (name: string) => (/^[A-Za-z_$][\w$]*$/.test(name) ? name : JSON.stringify(name))
  return literal(value, indent, { step: 2, key, scalar: scriptScalar })
}

/** A Python expression for a JSON value. */
export function pythonLiteral(value: unknown, indent = 0): string {
  return literal(value, indent, { step: 4, key: JSON.stringify, scalar: pythonScalar })
}

type Notation = {
  readonly step: number
  key(name: string): string
  scalar(value: string | number | boolean | null): string
}

function literal(value: unknown, indent: number, notation: Notation): string {
  if (typeof value !== 'object' || value === null)
    return notation.scalar((value ?? null) as string | number | boolean | null)
  const [open, close, parts] = Array.isArray(value)
    ? ['[', ']', (inner: number) => value.map((item) => literal(item, inner, notation))]
    : ['{', '}', (inner: number) => membersOf(value, inner, notation)]
  // The JSON text is about as long: long values are not printed twice at each level.
  if (JSON.stringify(value).length <= 2 * maxWidth) {
    const flat = parts(indent)
    if (flat.length === 0) return open + close
    const space = open === '{' ? ' ' : ''
    const line = `${open}${space}${flat.join(', ')}${space}${close}`
    if (line.length + indent <= maxWidth && !line.includes('\n')) return line
  }
  const inner = indent + notation.step
  return `${open}\n${parts(inner)
    .map((part) => ' '.repeat(inner) + part)
    .join(',\n')}\n${' '.repeat(indent)}${close}`
}

function membersOf(value: object, indent: number, notation: Notation): string[] {
  return Object.entries(value)
    .filter(([, member]) => member !== undefined)
    .map(([name, member]) => `${notation.key(name)}: ${literal(member, indent, notation)}`)
}

function scriptScalar(value: string | number | boolean | null): string {
  if (typeof value !== 'string') return String(value)
  const quoted = JSON.stringify(value)
  return value.includes("'") || value.includes('\\') || quoted.includes('\\"')
    ? quoted
    : `'${quoted.slice(1, -1)}'`
}

function pythonScalar(value: string | number | boolean | null): string {
  if (value === null) return 'None'
  if (typeof value === 'boolean') return value ? 'True' : 'False'
  return JSON.stringify(value)
}

/** A word of a POSIX shell that expands nothing. */
export function shellWord(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}
