import type { LabelSelector } from '../../objects/gateway-api.ts'

type Labels = Readonly<Record<string, string>>
type Expression = NonNullable<LabelSelector['matchExpressions']>[number]

/**
 * Whether labels satisfy all demands of a selector. An empty selector matches everything, an absent one
 * nothing, and so does an operator that is not supported.
 */
export function matchesSelector(selector: LabelSelector | undefined, labels: Labels): boolean {
  if (selector === undefined) return false
  const { matchLabels = {}, matchExpressions = [] } = selector
  return (
    Object.entries(matchLabels).every(([key, value]) => labelOf(labels, key) === value) &&
    matchExpressions.every((expression) => matchesExpression(expression, labels))
  )
}

function matchesExpression({ key, operator, values = [] }: Expression, labels: Labels): boolean {
  const label = labelOf(labels, key)
  switch (operator) {
    case 'In':
      return label !== undefined && values.includes(label)
    case 'NotIn':
      return label === undefined || !values.includes(label)
    case 'Exists':
      return label !== undefined
    case 'DoesNotExist':
      return label === undefined
    default:
      return false
  }
}

/** The mistake in a selector, which the API server does not check; undefined if it is valid. */
export function selectorMistake({ matchExpressions = [] }: LabelSelector): string | undefined {
  for (const [index, { operator, values = [] }] of matchExpressions.entries()) {
    const place = `matchExpressions[${index}]`
    const needsValues = operator === 'In' || operator === 'NotIn'
    if (!needsValues && operator !== 'Exists' && operator !== 'DoesNotExist') {
      return `${place}.operator must be In, NotIn, Exists or DoesNotExist, got "${operator}"`
    }
    if (needsValues && values.length === 0)
      return `${place}.values must have an entry for operator ${operator}`
    if (!needsValues && values.length > 0) return `${place}.values must be empty for operator ${operator}`
  }
  return undefined
}

function labelOf(labels: Labels, key: string): string | undefined {
  return Object.hasOwn(labels, key) ? labels[key] : undefined
}
