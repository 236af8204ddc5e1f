/** Where in a value: the keys and indexes that lead there. */
export type Path = readonly (string | number)[]

const plainKey = /^[A-Za-z_][\w-]*$/

/** `llm.models[0].params.apiKey`; keys that hold other characters are quoted in brackets. The root is an empty text. */
export function formatPath(path: Path): string {
  let text = ''
  for (const step of path) {
    if (typeof step === 'number') text += `[${step}]`
    else if (!plainKey.test(step)) text += `[${JSON.stringify(step)}]`
    else text += text === '' ? step : `.${step}`
  }
  return text
}
