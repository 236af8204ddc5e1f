/** Values of a template, by name. Lists and objects are inserted as JSON, which is valid in YAML. */
export type TemplateValues = Readonly<Record<string, string | number | object>>

const placeholder = /\{\{\s*([\w.]+)\s*\}\}/g

/** Replaces each `{{name}}` of a text. An unknown name is an error that lists the known ones. */
export function fillTemplate(text: string, values: TemplateValues, place: string): string {
  return text.replace(placeholder, (_, name: string) => {
    const value = Object.hasOwn(values, name) ? values[name] : undefined
    if (value === undefined) {
      throw new Error(`${place}: {{${name}}} is not a value: use one of ${Object.keys(values).join(', ')}`)
    }
    return typeof value === 'object' ? JSON.stringify(value) : String(value)
  })
}

/** Whether a text contains a placeholder. */
export function hasPlaceholder(text: string): boolean {
  return text.search(placeholder) !== -1
}
