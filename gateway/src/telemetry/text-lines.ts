/** Converts JSON lines of the log to text: time, level, message, then fields as `name=value`. */
export function textLines(lines: string): string {
  return lines
    .split('\n')
    .map((line) => (line === '' ? '' : textLine(line)))
    .join('\n')
}

function textLine(line: string): string {
  const fields = fieldsOf(line)
  if (fields === undefined) return line
  const { time, level, msg, ...others } = fields
  const head = [time, String(level).toUpperCase(), msg].join(' ')
  return Object.entries(others).reduce((text, [name, value]) => `${text} ${name}=${textOf(value)}`, head)
}

function fieldsOf(line: string): Record<string, unknown> | undefined {
  try {
    const fields: unknown = JSON.parse(line)
    return typeof fields === 'object' && fields !== null ? { ...fields } : undefined
  } catch {
    return undefined
  }
}

/** Texts without spaces, quotes and line ends as they are; other values as JSON. */
function textOf(value: unknown): string {
  return typeof value === 'string' && /^[^\s"=]+$/.test(value) ? value : JSON.stringify(value)
}
