/** A mistake of a refused configuration. */
export type Mistake = {
  readonly message: string
  readonly line?: number
  readonly column?: number
  /** `llm.models[0].name`. */
  readonly path?: string
}

const step = String.raw`(?:\[(?:\d+|"(?:[^"\\]|\\.)*")\])`
const form = new RegExp(
  String.raw`^(?:.{0,4000}?:(\d{1,9}):(\d{1,9}): )?(?:([A-Za-z_][\w-]*${step}*(?:(?:\.[A-Za-z_][\w-]*)${step}*)*): )?(.*)$`,
  's',
)
/** Further mistakes are not reported. */
const maxMistakes = 100
const maxLength = 2_000

/** Parses the reasons of a refused configuration: `file:line:column: path: message`, one per line. */
export function parseMistakes(text: string): Mistake[] {
  return text
    .split('\n')
    .filter((line) => line !== '')
    .slice(0, maxMistakes)
    .map((line) => parseMistake(line.slice(0, maxLength)))
}

function parseMistake(text: string): Mistake {
  const [, line, column, path, message = text] = form.exec(text) ?? []
  return {
    message,
    ...(line !== undefined && { line: Number(line), column: Number(column) }),
    ...(path !== undefined && { path }),
  }
}
