/** Built-in pattern. */
export type Builtin = {
  /** Replacement of a match. */
  readonly label: string
  /** Linear-time pattern: every repetition is bounded and nested repetitions match disjoint characters. */
  readonly find: RegExp
  /** Validates a match. */
  readonly isOne?: (match: string) => boolean
  /** Returns the valid spans within a match that may have adjacent digits. */
  readonly within?: (match: string) => Span[]
}

/** Characters `[start, end)` of a match. */
export type Span = { readonly start: number; readonly end: number }

export type BuiltinName = 'email' | 'phoneNumber' | 'creditCard' | 'ssn' | 'caSin'

/** Not inside a longer number or word. */
const notAfter = '(?<![\\w.-])'
const notBefore = '(?![\\w-]|\\.\\d)'

export const builtins: Readonly<Record<BuiltinName, Builtin>> = {
  email: {
    label: '<EMAIL_ADDRESS>',
    find: /(?<![\p{L}\p{N}._%+-])[\p{L}\p{N}._%+-]{1,64}@(?:[\p{L}\p{N}](?:[\p{L}\p{N}-]{0,61}[\p{L}\p{N}])?\.){1,8}\p{L}{2,24}/gu,
  },
  phoneNumber: {
    label: '<PHONE_NUMBER>',
    find: new RegExp(
      [
        // With country code: 7 to 15 digits (E.164), in groups.
        '(?<![\\w.])\\+\\d{1,3}(?:[ .-]?\\(?\\d{1,4}\\)?){2,5}(?!\\d)',
        // North America: area code, exchange, number.
        `${notAfter}(?:1[ .-])?(?:\\(\\d{3}\\) ?|\\d{3}[ .-])\\d{3}[ .-]\\d{4}${notBefore}`,
      ].join('|'),
      'g',
    ),
    isOne: (match) => isBetween(digitsOf(match).length, 7, 15),
  },
  creditCard: {
    label: '<CREDIT_CARD>',
    // A date or code may follow a number, an amount may precede it.
    find: new RegExp(`${notAfter}\\d[\\d -]*(?!\\w|\\.\\d)`, 'g'),
    within: cardsIn,
  },
  ssn: {
    label: '<SSN>',
    // No area 000, 666 or above 899, no group 00, no serial 0000.
    find: new RegExp(`${notAfter}(?!000|666|9)\\d{3}([- ])(?!00)\\d{2}\\1(?!0000)\\d{4}${notBefore}`, 'g'),
  },
  caSin: {
    label: '<CA_SIN>',
    find: new RegExp(`${notAfter}[1-9]\\d{2}([- ])\\d{3}\\1\\d{3}${notBefore}`, 'g'),
    isOne: (match) => hasCheckDigit(digitsOf(match)),
  },
}

function digitsOf(text: string): string {
  return text.replace(/\D/g, '')
}

function isBetween(number: number, least: number, most: number): boolean {
  return number >= least && number <= most
}

/** Luhn check (ISO/IEC 7812-1 annex B). Rejects repetitions of one digit, some of which pass the check. */
export function hasCheckDigit(digits: string): boolean {
  if (/^(\d)\1*$/.test(digits)) return false
  let sum = 0
  for (let index = 0; index < digits.length; index += 1) {
    const digit = Number(digits[digits.length - 1 - index])
    const doubled = index % 2 === 0 ? digit : digit * 2
    sum += doubled > 9 ? doubled - 9 : doubled
  }
  return sum % 10 === 0
}

/**
 * Returns card numbers among digit groups separated by single blanks or dashes: whole groups with 13 to 19
 * digits.
 */
function cardsIn(run: string): Span[] {
  const found: Span[] = []
  let start = 0
  while (start < run.length) {
    const startsGroup = isDigit(run, start) && !isDigit(run, start - 1)
    const end = startsGroup ? endOfCard(run, start) : undefined
    if (end !== undefined) found.push({ start, end })
    start = end ?? start + 1
  }
  return found
}

/** Returns the end of the longest card number at `start`. */
function endOfCard(run: string, start: number): number | undefined {
  /**
   * Luhn sums of the digits so far, with every second digit doubled, starting at the first or the second
   * digit.
   */
  let fromFirst = 0
  let fromSecond = 0
  let count = 0
  let isRepeated = true
  let end: number | undefined
  for (let index = start; index < run.length && count < 19; index += 1) {
    if (!isDigit(run, index)) {
      if (isDigit(run, index + 1)) continue
      break
    }
    const digit = run.charCodeAt(index) - 0x30
    const doubled = digit > 4 ? digit * 2 - 9 : digit * 2
    fromFirst += count % 2 === 0 ? doubled : digit
    fromSecond += count % 2 === 0 ? digit : doubled
    isRepeated &&= run.charCodeAt(index) === run.charCodeAt(start)
    count += 1
    if (count < 13 || isRepeated || isDigit(run, index + 1)) continue
    const sum = count % 2 === 0 ? fromFirst : fromSecond
    if (sum % 10 === 0) end = index + 1
  }
  return end
}

function isDigit(text: string, index: number): boolean {
  const code = text.charCodeAt(index)
  return code >= 0x30 && code <= 0x39
}
