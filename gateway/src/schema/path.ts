/** Path within a value: keys and indexes. */
export type Path = readonly (string | number)[]

/** The value at a path, own members only. */
export function valueAt(tree: unknown, path: Path): unknown {
  let here = tree
  for (const step of path) {
    if (typeof here !== 'object' || here === null || !Object.hasOwn(here, step)) return undefined
    here = Reflect.get(here, step)
  }
  return here
}

const plainKey = /^[A-Za-z_][\w-]*$/

/**
 * Formats a path: `llm.models[0].params.apiKey`. Other keys are quoted in brackets; the root is an empty
 * text.
 */
export function formatPath(path: Path): string {
  let text = ''
  for (const step of path) {
    if (typeof step === 'number') text += `[${step}]`
    else if (!plainKey.test(step)) text += `[${JSON.stringify(step)}]`
    else text += text === '' ? step : `.${step}`
  }
  return text
}
