/**
 * Paths that name a model: deployments of Azure, and models and endpoints of Google before a method. Those
 * of Vertex AI for OpenAI's API have the model in the body.
 */
const form = /\/(?:deployments\/([^/]+)(?=\/|$)|(?:models|tunedmodels|endpoints)\/([^/:]+)(?=:[a-z]+$))/gi

/** The model in a path with any prefix; undefined without one or with several. */
export function modelOfPath(path: string): string | undefined {
  const [model, ...others] = modelsIn(path)
  return others.length > 0 ? undefined : model
}

/**
 * Whether a path of a call that is not read names another model. `path` is canonical, in lower case. Servers
 * resolve `..`, so that such a path may be any other.
 */
export function namesOtherModel(path: string, model: string): boolean {
  if (/\/\.\.(?:\/|$)/.test(path)) return true
  const plain = model.toLowerCase().replace(/^.*\//, '')
  return modelsIn(path).some((named) => named !== plain)
}

function modelsIn(path: string): string[] {
  return [...path.matchAll(form)].flatMap(([, deployment, model]) => decodePercent(deployment ?? model) ?? [])
}

function decodePercent(segment: string | undefined): string | undefined {
  try {
    return segment === undefined ? undefined : decodeURIComponent(segment)
  } catch {
    return undefined
  }
}
