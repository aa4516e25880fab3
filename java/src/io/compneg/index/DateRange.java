package io.compneg.index;

import java.io.IOException;
import java.time.DateTimeException;
import java.time.LocalDate;
import java.time.YearMonth;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.lucene.index.FilteredTermsEnum;
import org.apache.lucene.index.IndexReader;
import org.apache.lucene.index.MultiTerms;
import org.apache.lucene.index.Terms;
import org.apache.lucene.index.TermsEnum;
import org.apache.lucene.search.MultiTermQuery;
import org.apache.lucene.search.QueryVisitor;
import org.apache.lucene.util.AttributeSource;
import org.apache.lucene.util.BytesRef;

/**
 * The documents with a date of ISO 8601 in a range, among the terms of a field. An end of the range is a year, a month,
 * a day or a time, all of which belongs to the range. A date of a document counts as its first moment.
 *
 * <p>In the order of terms dates come by their local time, which is at most a day from UTC. So only the terms from a
 * day before the range to a day behind it are read.
 */
final class DateRange extends MultiTermQuery {
  private static final String TIME =
      "(\\d{2}):(\\d{2})(?::(\\d{2})(?:\\.(\\d{1,9}))?)?(?:Z|([+-])(\\d{2})(?::?(\\d{2}))?)?";
  private static final Pattern DATE = Pattern.compile("(\\d{4})(?:-(\\d{2})(?:-(\\d{2})(?:[T ]" + TIME + ")?)?)?");
  private static final Pattern LIKE_DATE =
      Pattern.compile("\\s*(?:\\d{4}([-/.])\\d{1,2}\\1\\d{1,2}|\\d{1,2}([-/.])\\d{1,2}\\2\\d{4})(?:[T ].*)?");
  private static final int LONGEST = 40; // bytes; all dates are shorter

  private static final long SECOND = 1_000_000; // in microseconds
  private static final long MINUTE = 60 * SECOND;
  private static final long DAY = 24 * 60 * MINUTE;

  /** The time that a date names, in microseconds: both ends belong to it. */
  private record Period(long first, long last) {}

  private final Period range;

  private DateRange(String field, Period range) {
    super(field, MultiTermQuery.CONSTANT_SCORE_REWRITE);
    this.range = range;
  }

  /**
   * Reads {@code 1999-05..2003}, or {@code 1999-05<..<2003}. An end may be left out. Null when it is no range of
   * dates.
   */
  static DateRange of(String field, String text) {
    int dots = text.indexOf("..");
    if (dots < 0 || text.length() == 2) return null;
    boolean isAfter = text.startsWith("<..", dots - 1);
    boolean isBefore = text.startsWith("..<", dots);
    Period from = dots == 0 ? new Period(Long.MIN_VALUE, 0) : period(text.substring(0, isAfter ? dots - 1 : dots));
    Period to =
        dots + 2 == text.length() ? new Period(0, Long.MAX_VALUE) : period(text.substring(dots + (isBefore ? 3 : 2)));
    if (from == null || to == null) return null;
    return new DateRange(field, new Period(isAfter ? from.last + 1 : from.first, isBefore ? to.first - 1 : to.last));
  }

  /** Whether any document has a date in a field. */
  static boolean hasDates(IndexReader reader, String field) throws IOException {
    Terms terms = MultiTerms.getTerms(reader, field);
    return terms != null
        && new DateRange(field, new Period(Long.MIN_VALUE, Long.MAX_VALUE)).dates(terms).next() != null;
  }

  /** Whether a text is a date for people, by its numbers, but none of ISO 8601: {@code 1.5.1999}. */
  static boolean isUnread(String text) {
    return LIKE_DATE.matcher(text).matches() && period(DocumentReader.stripped(text)) == null;
  }

  /** What {@code expression.dates.period} gives. */
  private static Period period(String text) {
    Matcher date = DATE.matcher(text);
    if (!date.matches() || number(date, 1) < 1) return null;
    try {
      YearMonth month = YearMonth.of(number(date, 1), date.group(2) == null ? 12 : number(date, 2));
      LocalDate last = date.group(3) == null ? month.atEndOfMonth() : month.atDay(number(date, 3));
      if (date.group(4) == null) {
        LocalDate first = date.group(2) == null ? last.withDayOfYear(1) : date.group(3) == null ? month.atDay(1) : last;
        return new Period(first.toEpochDay() * DAY, (last.toEpochDay() + 1) * DAY - 1);
      }
      return time(date, last.toEpochDay() * DAY);
    } catch (DateTimeException e) {
      return null;
    }
  }

  private static Period time(Matcher date, long day) {
    int hour = number(date, 4);
    int minute = number(date, 5);
    int second = number(date, 6);
    int offsetHour = number(date, 9);
    int offsetMinute = number(date, 10);
    if (hour > 23 || minute > 59 || second > 59 || offsetHour > 23 || offsetMinute > 59) return null;
    String fraction = date.group(7) == null ? "" : date.group(7);
    String digits = fraction.substring(0, Math.min(6, fraction.length()));
    long length = date.group(6) == null ? MINUTE : SECOND;
    for (int i = 0; i < digits.length(); i++) length /= 10;
    long first =
        day + (hour * 60 + minute) * MINUTE + second * SECOND + Long.parseLong((digits + "000000").substring(0, 6));
    first -= (offsetHour * 60 + offsetMinute) * MINUTE * ("-".equals(date.group(8)) ? -1 : 1);
    return new Period(first, first + length - 1);
  }

  private static int number(Matcher date, int group) {
    return date.group(group) == null ? 0 : Integer.parseInt(date.group(group));
  }

  @Override
  protected TermsEnum getTermsEnum(Terms terms, AttributeSource attributes) throws IOException {
    return dates(terms);
  }

  private TermsEnum dates(Terms terms) throws IOException {
    BytesRef end = new BytesRef(range.last == Long.MAX_VALUE ? ":" : day(range.last + DAY) + "~");
    return new FilteredTermsEnum(terms.iterator()) {
      {
        setInitialSeekTerm(new BytesRef(range.first == Long.MIN_VALUE ? "0" : day(range.first - DAY)));
      }

      @Override
      protected AcceptStatus accept(BytesRef term) {
        if (term.compareTo(end) > 0) return AcceptStatus.END;
        Period date = term.length > LONGEST ? null : period(term.utf8ToString());
        return date != null && range.first <= date.first && date.first <= range.last ? AcceptStatus.YES
                                                                                     : AcceptStatus.NO;
      }
    };
  }

  private static String day(long moment) {
    LocalDate day = LocalDate.ofEpochDay(Math.floorDiv(moment, DAY));
    return day.getYear() > 9999 ? ":" : day.toString(); // : is behind 9
  }

  @Override
  public void visit(QueryVisitor visitor) {
    visitor.visitLeaf(this);
  }

  @Override
  public String toString(String field) {
    return getField() + ":" + range;
  }

  @Override
  public boolean equals(Object other) {
    return super.equals(other) && range.equals(((DateRange) other).range);
  }

  @Override
  public int hashCode() {
    return 31 * super.hashCode() + range.hashCode();
  }
}
