def early_letters(data_source, solution_str, ground_truth, extra_info=None):
    """Share of letters in the first half of the alphabet: even a policy that knows nothing gets different scores."""
    letters = [letter for letter in solution_str.lower() if letter.isalpha()]
    return sum(letter <= "m" for letter in letters) / max(1, len(letters))
